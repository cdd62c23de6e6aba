"""Behaviours: what owners tell the market, one file an idea. `registry.behaviours` has their names."""

from flmarket_sim.strategy.behaviours.behaviour import (
    Behaviour,
    BehaviourReports,
    CohortView,
    Feedback,
    Transfers,
)

__all__ = ["Behaviour", "BehaviourReports", "CohortView", "Feedback", "Transfers"]
