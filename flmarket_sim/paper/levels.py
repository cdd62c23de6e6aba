"""Does a larger M make M-RegretNet more truthful (paper, RQ4)? Trains instances of it for each M and measures them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from flmarket_sim import aggregation, auctions
from flmarket_sim.auctions.play import expected_utility, measured_against
from flmarket_sim.errors import InputError
from flmarket_sim.paper.paper_market import PaperMarket, PaperMarkets
from flmarket_sim.paper.published_attack import Attack
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import from_seeds
from flmarket_sim.strategy.probe import probe
from flmarket_sim.strategy.search_effort import effort_of
from flmarket_sim.studies.study import Count, Finding, Plot, Row, Work, markets, spread

MEASURES = (
    "as_published",
    "corrected",
    "probed",
    "ir_violation",
    "ir_as_published",
    "privacy_bought",
    "error_bound",
    "invalid",
)
SHOWN = {
    "as_published": "as published",
    "corrected": "corrected metric",
    "probed": "probe",
    "ir_violation": "IR violation",
}


class Levels:
    """Regret and IR violation of M-RegretNet by its number of levels M, over instances that differ in their seed.

    Every instance is trained by the package's `fast` settings with these `steps`, `batch` and `tries`, and
    measured on markets that no training saw, at budget factors of the scenario's range: regret by the paper's
    metric as published and by the corrected metric (`attacked` markets), and by the probe (`probed` markets); IR
    violation in expectation and of one draw; share of the privacy budgets that is bought; error bound under
    OptAggr of the draws that buy something.
    """

    name = "levels"

    def __init__(
        self,
        markets: PaperMarkets,
        levels: Annotated[Sequence[Annotated[int, Field(ge=1, le=64)]], Field(min_length=1)] = (
            1,
            2,
            4,
            8,
            16,
        ),
        instances: Count = 10,
        steps: Count = 700,
        batch: Count = 256,
        tries: Count = 8,
        profiles: Count = 500,
        attacked: Count = 100,
        probed: Count = 20,
        effort: str = "standard",
        quick: dict[str, Any] | None = None,
    ) -> None:
        effort_of(effort)
        for key, count in (("attacked", attacked), ("probed", probed)):
            if count > profiles:
                raise InputError(
                    f"'{key}' is how many of the {profiles} profiles are {key}; {count} are too many"
                )
        self.markets, self.levels, self.instances = list(markets), list(levels), instances
        self.settings: dict[str, Any] = {
            "steps": steps,
            "batch": batch,
            "tries": tries,
            "profiles": profiles,
        }
        self.settings |= {"attacked": attacked, "probed": probed, "effort": effort}

    def tasks(self, scenario: Scenario) -> list[Work]:
        return [
            {"market": market.model_dump(), "levels": levels, "instance": instance} | self.settings
            for instance in range(self.instances)
            for market in self.markets
            for levels in self.levels
        ]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        market = PaperMarket.model_validate(work["market"]).of(scenario)
        auction = _trained(market, work)
        truth, budget = markets(market, work["profiles"], seed=scenario.seed + 1)
        few, some = slice(0, work["probed"]), slice(0, work["attacked"])
        attack = Attack(auction, truth.take(some), budget[some])
        bids = truth.bids(work["levels"])
        utility, cost = expected_utility(auction, truth, bids, budget)
        outcome = auction.decide(bids, budget, np.random.default_rng(work["instance"]))
        weights = aggregation.create("opt-aggr").weights(outcome.privacy_loss, truth.data_size)
        error = aggregation.error_bound(weights, outcome.privacy_loss, truth.data_size)
        valid = np.isfinite(error)
        chance, _ = auction.expected(bids, budget)
        share = chance @ (np.arange(chance.shape[2]) / (chance.shape[2] - 1))
        finest = max(
            work["levels"], scenario.market.levels
        )  # reports of at least as many levels as the network has
        found = probe(
            auction,
            truth.take(few),
            budget[few],
            seed=scenario.seed,
            effort=work["effort"],
            levels=finest,
        )
        measured = {
            "as_published": attack.as_published(work["instance"]).mean(),
            "corrected": attack.corrected().mean(),
            "probed": found.relative_gain.mean(),
            "ir_violation": (np.maximum(-utility, 0.0) / measured_against(truth, cost)).mean(),
            "ir_as_published": attack.drawn_shortfall(work["instance"]).mean(),
            "privacy_bought": share.mean(),
            "error_bound": error[valid].mean() if valid.any() else float("nan"),
            "invalid": 1 - valid.mean(),
        }
        name = work["market"]["name"]
        return [
            {"market": name, "levels": work["levels"]}
            | {key: float(value) for key, value in measured.items()}
        ]

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        found = [row for rows in results for row in rows]
        rows: list[dict[str, Any]] = []
        for market in self.markets:
            for levels in self.levels:
                mine = [
                    row for row in found if (row["market"], row["levels"]) == (market.name, levels)
                ]
                line: dict[str, Any] = {
                    "market": market.name,
                    "levels": levels,
                    "instances": len(mine),
                }
                for measure in MEASURES:
                    line |= spread(measure, from_seeds(np.array([row[measure] for row in mine])))
                rows.append(line)
        drawn = [
            {"market": row["market"], "levels": row["levels"], "measured_by": label}
            | {f"violation{end}": row[f"{key}{end}"] for end in ("", "_low", "_high")}
            for key, label in (SHOWN | {"privacy_bought": "share of privacy bought"}).items()
            for row in rows
        ]
        plot = Plot(
            "levels",
            "violation",
            "measured_by",
            "M",
            "mean gain or loss / cost; share",
            log=True,
            panel="market",
            log_x=True,
        )
        return Finding(rows, plot, [_sentence(rows, market.name) for market in self.markets], drawn)


def _trained(market: Scenario, work: Work) -> Any:
    """An instance: its seed is the number of the instance, the market's population the scenario's."""
    import torch

    from flmarket_sim import training

    torch.set_num_threads(1)
    fast: Any = training.preset("fast", "m-regretnet")
    settings = replace(fast, steps=work["steps"], markets=work["batch"], tries=work["tries"])
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "instance.safetensors"
        training.train(
            "m-regretnet",
            market,
            "opt-aggr",
            out,
            settings,
            seed=work["instance"],
            levels=work["levels"],
        )
        return auctions.create("m-regretnet", weights=str(out))


def _sentence(rows: list[dict[str, Any]], market: str) -> str:
    mine = [row for row in rows if row["market"] == market]
    first, last = mine[0], mine[-1]
    told = ", ".join(f"{label} {first[key]:.3g} to {last[key]:.3g}" for key, label in SHOWN.items())
    bought = f"privacy bought {first['privacy_bought']:.0%} to {last['privacy_bought']:.0%}"
    return f"{market}: from M = {first['levels']} to M = {last['levels']}: {told}; {bought}"
