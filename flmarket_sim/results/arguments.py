"""The arguments that several calls share: a scenario in any form, and budget factors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from flmarket_sim.errors import InputError
from flmarket_sim.report.evaluation_table import factors
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.scenario_file import change_scenario, load_scenario

AnyScenario = Scenario | str | os.PathLike[str]
Budgets = str | float | Sequence[float] | None


def scenario_from(scenario: AnyScenario, changes: dict[str, Any]) -> Scenario:
    """A scenario file, the name of a shipped one or a Scenario, with other values by keyword.

    A double underscore stands for a dot: `owners__count=50`.
    """
    if not isinstance(scenario, Scenario):
        return load_scenario(scenario, **changes)
    return change_scenario(scenario, **changes) if changes else scenario


def budget_factors(budgets: Budgets) -> list[float] | None:
    """Budget factors from a number, several numbers, or a text as on the command line.

    None and "uniform" mean factors that are drawn from [0.1, 2], one for each market.
    """
    if budgets is None or isinstance(budgets, str):
        return factors(budgets or "uniform")
    try:
        several = [float(part) for part in _several(budgets)]
    except (TypeError, ValueError):
        several = []
    if not several or not all(0 < factor < float("inf") for factor in several):
        raise InputError(f"budgets must be positive numbers, one or several; got {budgets!r}")
    return list(dict.fromkeys(several))


def _several(value: Any) -> list[Any]:
    return list(value) if hasattr(value, "__iter__") else [value]
