"""Owners who learn to bid from their own payoffs: what they come to ask, and whether it pays."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from flmarket_sim.auctions import named
from flmarket_sim.eventlog import sql
from flmarket_sim.experiments.market_runs import auction_table, changed, ran
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import from_seeds
from flmarket_sim.studies.study import Count, Finding, Names, Plot, Progress, spread

# the factor of the truth that a bid asks: of what she offers, not of all that she has; a person once, however many names
ASKED = """
WITH told AS (
    SELECT bid.round, bid.value AS asked, o.rate * bid.data_size * CASE o.family
        WHEN 'linear' THEN 2 * bid.privacy_budget WHEN 'quadratic' THEN bid.privacy_budget ** 2
        WHEN 'sqrt' THEN 2 * sqrt(bid.privacy_budget) WHEN 'exponential' THEN exp(bid.privacy_budget) - 1
        ELSE o.privacy_budget * o.data_size / bid.data_size END AS worth,
        bid.privacy_budget / bid.true_privacy_budget AS budget_share
    FROM bid JOIN owners o ON o.owner = bid.sender WHERE bid.behaviour IS NOT NULL)
SELECT round, avg(ln(asked / worth)) AS log_factor, avg(budget_share) AS budget_share FROM told GROUP BY round ORDER BY round
"""
EARNED = """
SELECT round, sum(utility) AS got, sum(truthful_utility) AS honest FROM counterfactual GROUP BY round ORDER BY round
"""
ROUNDS = "SELECT round, budget, bound_of_data, valid FROM rounds ORDER BY round"


class Learners:
    """All owners learn, against each mechanism; the rounds are cut into `blocks`. Intervals are over seeds."""

    name = "learners"

    def __init__(
        self,
        auctions: Names,
        behaviours: Names = ("exp3", "bandit"),
        blocks: Count = 10,
        seeds: Count = 4,
        share: Annotated[float, Field(gt=0, le=1)] = 1.0,
        options: dict[str, Any] | None = None,
    ) -> None:
        for name in auctions:
            named(name)
        self.auctions, self.behaviours, self.blocks, self.seeds = (
            list(auctions),
            list(behaviours),
            blocks,
            seeds,
        )
        self.share, self.options = share, options or {}

    def run(self, scenario: Scenario, progress: Progress) -> Finding:
        rows: list[dict[str, Any]] = []
        said = []
        total, done = len(self.auctions) * len(self.behaviours) * self.seeds, 0
        for name in self.auctions:
            for behaviour in self.behaviours:
                runs = []
                for seed in range(scenario.seed, scenario.seed + self.seeds):
                    lying = [
                        {"name": behaviour, "share": self.share, **self.options.get(behaviour, {})}
                    ]
                    one = changed(
                        scenario,
                        seed=seed,
                        auction=auction_table(name),
                        owners__behaviours=lying,
                        market__counterfactual=True,
                    )
                    with ran(one) as folder:
                        runs.append(self._blocks(folder, scenario.rounds))
                    done += 1
                    progress(done, total)
                for block in range(self.blocks):
                    row: dict[str, Any] = {
                        "auction": name,
                        "behaviour": behaviour,
                        "rounds_until": (block + 1) * scenario.rounds // self.blocks,
                        "seeds": self.seeds,
                    }
                    for measure in ("asked_factor", "budget_share", "advantage", "bound_of_data"):
                        row |= spread(
                            measure, from_seeds(np.array([run[measure][block] for run in runs]))
                        )
                    rows.append(row)
                said.append(
                    f"{name}, {behaviour}: in the last block of rounds they ask {rows[-1]['asked_factor']:.2f} times the truth and gain "
                    f"{rows[-1]['advantage']:+.3f} of the buyer's money over what the truth would earn each alone"
                )
        label = f"factor of the truth that {self.behaviours[0]} learners ask"
        drawn = [
            row for row in rows if row["behaviour"] == self.behaviours[0]
        ]  # all of them would be too many lines
        return Finding(
            rows,
            Plot("rounds_until", "asked_factor", "auction", "round", label, level=1.0),
            said,
            drawn,
        )

    def _blocks(self, folder: Any, rounds: int) -> dict[str, list[float]]:
        """Each measure in each block of rounds of a run."""
        asked, earned, each = (sql(folder, query).to_pydict() for query in (ASKED, EARNED, ROUNDS))
        found: dict[str, list[float]] = {
            "asked_factor": [],
            "budget_share": [],
            "advantage": [],
            "bound_of_data": [],
        }
        for block in range(self.blocks):
            begin, end = block * rounds // self.blocks, (block + 1) * rounds // self.blocks

            def part(
                table: dict[str, list[Any]], column: str, begin: int = begin, end: int = end
            ) -> Any:
                chosen = [
                    value
                    for at, value in zip(table["round"], table[column], strict=True)
                    if begin <= at < end
                ]
                return np.array(chosen, float)

            gained = part(earned, "got").sum() - part(earned, "honest").sum()
            found["asked_factor"].append(float(np.exp(part(asked, "log_factor").mean())))
            found["budget_share"].append(float(part(asked, "budget_share").mean()))
            found["advantage"].append(float(gained / part(each, "budget").sum()))
            bound = part(each, "bound_of_data")[part(each, "valid") > 0]
            found["bound_of_data"].append(float(bound.mean()) if len(bound) else float("nan"))
        return found
