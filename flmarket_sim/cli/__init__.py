"""The command line: one file a command."""

from flmarket_sim.cli.app import main

__all__ = ["main"]
