"""`--no-plugins`, which every command has, and the line that names foreign code before it runs."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from flmarket_sim.cli.verbosity import chosen
from flmarket_sim.errors import one_line
from flmarket_sim.plugins.foreign_code import policy


def new_command() -> None:
    """A command begins: foreign code is allowed, and named on stderr."""
    policy.reset()
    policy.tell = _tell


def end_command() -> None:
    """Afterwards the process is as it was before the command."""
    policy.reset()


def _tell(sentence: str) -> None:
    if not chosen.quiet:
        print(f"flmarket: {one_line(sentence)}", file=sys.stderr, flush=True)


def _refuse(context: typer.Context, value: bool) -> None:
    if value and not context.resilient_parsing:
        policy.allowed = False


def _shape(
    no_plugins: Annotated[
        bool,
        typer.Option(
            "--no-plugins",
            callback=_refuse,
            expose_value=False,
            is_eager=True,
            help="Import no foreign code: no files, no other modules, no other packages.",
        ),
    ] = False,
) -> None:
    """A command that has nothing but the option, from which other commands get it."""


def plugin_options() -> list[Any]:
    """The option `--no-plugins`, for one command."""
    only = typer.Typer(add_completion=False)
    only.command()(_shape)
    return list(typer.main.get_command(only).params)
