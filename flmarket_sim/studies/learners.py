"""Owners who learn to bid from their own payoffs: the prices they learn to ask, and the gain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from flmarket_sim.eventlog import sql
from flmarket_sim.experiments.market_runs import auction_table, changed, ran
from flmarket_sim.owners.family_table import family_codes
from flmarket_sim.owners.owner_types import OwnerTypes
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import OVER_RUNS, from_seeds
from flmarket_sim.studies.study import Auctions, Count, Finding, Names, Plot, Row, Work, spread

# Bids of owners with a behaviour beside their true types. An owner with several names counts once.
BIDS = """
SELECT bid.round, bid.value AS price, bid.privacy_budget, bid.data_size,
    bid.privacy_budget / bid.true_privacy_budget AS budget_share,
    o.family, o.rate, o.privacy_budget AS true_budget, o.data_size AS true_size
FROM bid JOIN owners o ON o.owner = bid.sender WHERE bid.behaviour IS NOT NULL
ORDER BY bid.seq
"""
EARNED = """
SELECT round, sum(utility) AS earned, sum(truthful_utility) AS honest
FROM counterfactual GROUP BY round ORDER BY round
"""
ROUNDS = "SELECT round, budget, bound_of_data, valid FROM rounds ORDER BY round"


MEASURES = ("asked_factor", "budget_share", "advantage", "bound_of_data")
Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class Learners:
    """All owners learn, against each mechanism.

    The study cuts the rounds into `blocks`; intervals are over seeds.
    """

    name = "learners"
    auctions: Auctions
    behaviours: Names = ("exp3", "bandit")
    blocks: Count = 10
    seeds: Count = 4
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    options: dict[str, Any] | None = None

    def tasks(self, scenario: Scenario) -> list[Work]:
        options = self.options or {}
        return [
            {"auction": name, "seed": seed, "blocks": self.blocks}
            | {"behaviour": {"name": learner, "share": self.share, **options.get(learner, {})}}
            for name in self.auctions
            for learner in self.behaviours
            for seed in range(scenario.seed, scenario.seed + self.seeds)
        ]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        market = changed(
            scenario,
            seed=work["seed"],
            auction=auction_table(work["auction"]),
            owners__behaviours=[work["behaviour"]],
            market__counterfactual=True,
        )
        origin = {"auction": work["auction"], "behaviour": work["behaviour"]["name"]}
        with ran(market) as folder:
            return [origin | block for block in _blocks(folder, scenario.rounds, work["blocks"])]

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        cells: dict[tuple[str, str, int], list[Row]] = {}
        for block in (block for task in results for block in task):
            place = (block["auction"], block["behaviour"], block["rounds_until"])
            cells.setdefault(place, []).append(block)
        rows: list[Row] = []
        for (name, learner, until), seeds in cells.items():
            row: Row = {"auction": name, "behaviour": learner, "rounds_until": until}
            row["seeds"] = self.seeds
            for measure in MEASURES:
                row |= spread(measure, from_seeds(np.array([run[measure] for run in seeds])))
            rows.append(row)
        label = f"factor of the truth that {self.behaviours[0]} learners ask"
        plot = Plot("rounds_until", "asked_factor", "auction", "round", label, level=1.0)
        first = [row for row in rows if row["behaviour"] == self.behaviours[0]]
        last = [row for row in rows if row["rounds_until"] == scenario.rounds]
        shown = (
            "auction",
            "behaviour",
            "rounds_until",
            "asked_factor",
            "advantage",
            "bound_of_data",
        )
        sentences = [_sentence(row) for row in last]
        return Finding(rows, plot, sentences, first, OVER_RUNS, shown, last)


def _sentence(row: Row) -> str:
    return (
        f"{row['auction']}, {row['behaviour']}: in the last block of rounds they ask "
        f"{row['asked_factor']:.2f} times the truth and gain {row['advantage']:+.3f} of the "
        "buyer's money over what the truth would earn each alone"
    )


def _blocks(folder: Path, rounds: int, blocks: int) -> Iterator[Row]:
    """The measures of a run in each block of its rounds."""
    prices, utilities, market = (
        _prices(sql(folder, BIDS).to_pydict()),
        *(sql(folder, query).to_pydict() for query in (EARNED, ROUNDS)),
    )
    for block in range(blocks):
        begin, end = block * rounds // blocks, (block + 1) * rounds // blocks

        def part(table: Columns, column: str, begin: int = begin, end: int = end) -> Any:
            pairs = zip(table["round"], table[column], strict=True)
            return np.array([value for number, value in pairs if begin <= number < end], float)

        gained = part(utilities, "earned").sum() - part(utilities, "honest").sum()
        bound = part(market, "bound_of_data")[part(market, "valid") > 0]
        yield {
            "rounds_until": end,
            "asked_factor": float(np.exp(part(prices, "log_factor").mean())),
            "budget_share": float(part(prices, "budget_share").mean()),
            "advantage": float(gained / part(market, "budget").sum()),
            "bound_of_data": float(bound.mean()) if len(bound) else float("nan"),
        }


def _prices(bids: Columns) -> Columns:
    """By round, the mean logarithm of the price of a bid over the true value of what the bid
    offers, which may be less than all that the owner has, and the mean share of her privacy budget
    that it offers."""
    family = family_codes(np.array(bids["family"], str))
    numbers = {name: np.array(bids[name], float) for name in bids if name != "family"}
    truth = OwnerTypes(family, numbers["rate"], numbers["true_budget"], numbers["true_size"])
    worth = truth.value(numbers["privacy_budget"], numbers["data_size"])
    rounds, place, count = np.unique(numbers["round"], return_inverse=True, return_counts=True)

    def mean(column: Any) -> list[Any]:
        return (np.bincount(place, column, len(rounds)) / count).tolist()  # type: ignore[no-any-return]

    return {
        "round": rounds.tolist(),
        "log_factor": mean(np.log(numbers["price"] / worth)),
        "budget_share": mean(numbers["budget_share"]),
    }
