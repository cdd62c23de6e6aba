"""Behaviours: how owners report, one idea a file. `registry.behaviours` has their names."""

from flmarket_sim.strategy.behaviours.behaviour import (
    Behaviour,
    BehaviourReports,
    CohortView,
    Feedback,
    Transfers,
)

__all__ = ["Behaviour", "BehaviourReports", "CohortView", "Feedback", "Transfers"]
