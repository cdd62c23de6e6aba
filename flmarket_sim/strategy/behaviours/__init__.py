"""Behaviours: what owners tell the market, one file an idea. `registry.behaviours` has their names."""

from flmarket_sim.strategy.behaviours.contract import Behaviour, Feedback, Told, Transfers, View

__all__ = ["Behaviour", "Feedback", "Told", "Transfers", "View"]
