"""Warnings about markets whose numbers mean little: absurd money, and losses that are not private.

A warning says why, and what to do. The thresholds are here, except the one of privacy losses, which
is in `privacy.loss_meaning`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import DataError
from flmarket_sim.market.ledger import Ledger
from flmarket_sim.owners.family_table import family_names
from flmarket_sim.owners.population import Population, create_population
from flmarket_sim.privacy.loss_meaning import CUSTOMARY_LIMIT, beyond_custom
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import Budget, Scenario

Floats = NDArray[np.float64]
LARGEST_MONEY = 2.0**53 / 100  # a float64 has no hundredths above: sums of payments lose them
# The dearest owner over the cheapest quarter. The families of the paper differ less than 100-fold
# at its privacy budgets, and records by another factor of some hundreds.
MOST_SPREAD = 1e6
MOST_TIMES = 1_000.0  # budget over the value of everything for sale: money that never runs out
MOST_OWNERS = 1_000_000  # whom `validate` draws to look at their valuations


def run_warnings(scenario: Scenario, population: Population, ledger: Ledger) -> list[str]:
    """Warnings about a market that has ended."""
    return [
        *_about_money(scenario, population),
        *(_about_sales(population) or _about_all_sales(ledger.sold)),
    ]


def scenario_warnings(scenario: Scenario) -> list[str]:
    """Warnings about a market that has not begun; nothing if its data are not here."""
    if scenario.owners.count > MOST_OWNERS:
        return []
    try:
        population = create_population(scenario, Streams(scenario.seed))
    except DataError:
        return []
    return [
        *_about_money(scenario, population),
        *(_about_sales(population) or _about_rounds(scenario, population)),
    ]


def _about_money(scenario: Scenario, population: Population) -> list[str]:
    owners = np.arange(len(population))
    values = population.value(owners, population.privacy_budget)
    dearest, cheap = int(np.argmax(values)), float(np.quantile(values, 0.25))
    total, largest = float(values.sum()), float(values[dearest])
    loss = float(population.privacy_budget[dearest])
    what = "Lower owners.privacy_budget or owners.rate."
    if str(family_names(population.family[[dearest]])[0]) == "exponential":
        what = (
            "Valuations that grow as exp(e) run away at large privacy budgets: lower "
            "owners.privacy_budget, or leave 'exponential' out of owners.families."
        )
    found = []
    if total > LARGEST_MONEY:
        found.append(
            f"The money of this market is absurd: for e = {loss:.3g} one owner asks {largest:.2g}, "
            f"and all owners ask {total:.2g}. Above {LARGEST_MONEY:.0e} floating-point numbers "
            f"have no hundredths, so payments do not add up. {what}"
        )
    elif largest > MOST_SPREAD * cheap:
        found.append(
            f"The money of this market is absurd: for e = {loss:.3g} one owner asks {largest:.2g}, "
            f"which is {largest / cheap:.0e} times what a quarter of the owners ask for all that "
            f"they have. A budget that is a factor of all valuations follows hers alone. {what}"
        )
    for buyer in scenario.resolved_buyers():
        times = _times(buyer.budget, total * scenario.market.bidders / len(population))
        if times > MOST_TIMES:
            found.append(
                f"The budget of {buyer.name} is up to {times:.2g} times what everything for sale "
                "is worth to its owners, so money never runs out and prices mean little. Lower "
                f"budget.{'factor' if buyer.budget.factor else 'amount'}; factors of 0.1 to 2 are "
                "usual."
            )
    return found


def _times(budget: Budget, value: float) -> float:
    """The largest budget of a round over the value of what its bidders have, on average."""
    if budget.factor is not None:
        return budget.factor[1]
    return budget.amount[1] / value if budget.amount is not None and value > 0 else 0.0


def _about_sales(population: Population) -> list[str]:
    largest = float(population.privacy_budget.max())
    if largest <= CUSTOMARY_LIMIT:
        return []
    return [
        f"An owner may lose e = {largest:.3g} of privacy in a single sale. "
        f"{beyond_custom(largest)} Lower owners.privacy_budget."
    ]


def _about_all_sales(sold: Floats) -> list[str]:
    largest, many = float(sold.max()), int((sold > CUSTOMARY_LIMIT).sum())
    if largest <= CUSTOMARY_LIMIT:
        return []
    return [
        f"{many:,} of {len(sold):,} owners lost more than e = {CUSTOMARY_LIMIT:g} of privacy over "
        f"all rounds, one of them {largest:.3g}. {beyond_custom(largest)} {WHAT_TO_DO}"
    ]


def _about_rounds(scenario: Scenario, population: Population) -> list[str]:
    """Before the run: what owners lose who sell all that they may whenever they are asked."""
    buyers = len(scenario.resolved_buyers())
    times = scenario.rounds * buyers * scenario.market.bidders / len(population)
    mean = float(population.privacy_budget.mean())
    total = min(times * mean, scenario.owners.lifetime_budget or np.inf)
    if total <= CUSTOMARY_LIMIT:
        return []
    return [
        f"An owner is asked {times:.3g} times on average, and if she always sells all that she "
        f"may, she loses e = {total:.3g} of privacy. {beyond_custom(total)} {WHAT_TO_DO}"
    ]


WHAT_TO_DO = (
    f"Set owners.lifetime_budget = {CUSTOMARY_LIMIT:g}, or ask more owners in fewer rounds for "
    "smaller privacy budgets."
)
