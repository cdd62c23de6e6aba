"""What a scenario may ask of a simulation and not of real clients."""

from __future__ import annotations

from flmarket_sim.errors import InputError
from flmarket_sim.scenario.model import Scenario

REASONS = {
    "owners.behaviours": "they see the whole market, and a real client bids as she wants to",
    "owners.cheats": "a real client sends what she wants to",
    "check": "the broker of real clients does not look for cheats yet",
    "contribution": "the broker of real clients does not divide money by contribution yet",
}


def refuse_simulated(scenario: Scenario) -> None:
    """Refuses the keys of a scenario that only a simulation can follow, all at once."""
    asked = {
        "owners.behaviours": scenario.owners.behaviours,
        "owners.cheats": scenario.owners.cheats,
        "check": scenario.check,
        "contribution": scenario.contribution,
    }
    refused = [f"{key} ({REASONS[key]})" for key, value in asked.items() if value]
    if refused:
        raise InputError(f"a market of real clients cannot follow {', '.join(refused)}")
