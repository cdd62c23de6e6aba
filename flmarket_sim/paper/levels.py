"""Whether a larger M makes M-RegretNet more truthful (paper, RQ4).

The study trains instances of M-RegretNet for each M and measures them.
"""

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
from flmarket_sim.studies.study import (
    Count,
    Finding,
    Plot,
    Row,
    SearchEffort,
    Work,
    markets,
    spread,
)

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
PLOTTED = {
    "as_published": "as published",
    "corrected": "corrected metric",
    "probed": "probe",
    "ir_violation": "IR violation",
}


class Levels:
    """Regret and IR violation of M-RegretNet by its number of levels M, over several instances.

    Instances differ in their seed. Each is trained by the package's `fast` settings with these
    `steps`, `batch` and `tries`, and measured on markets that no training saw, at budget factors
    of the scenario's range.

    as_published, corrected          regret by the paper's metric and by the corrected metric, on
                                     the first `attacked` markets
    probed                           regret by the probe, on the first `probed` markets
    ir_violation, ir_as_published    IR violation in expectation, and of one draw
    privacy_bought                   share of the privacy budgets that is bought
    error_bound                      under OptAggr, over the draws that buy something
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
        effort: SearchEffort = "standard",
        quick: dict[str, Any] | None = None,
    ) -> None:
        for key, count in (("attacked", attacked), ("probed", probed)):
            if count > profiles:
                raise InputError(
                    f"'{key}' is how many of the {profiles} profiles are {key}; "
                    f"{count} are too many"
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
        search = probe(
            auction,
            truth.take(few),
            budget[few],
            seed=scenario.seed,
            effort=work["effort"],
            levels=max(work["levels"], scenario.market.levels),  # no fewer than the network has
        )
        measured = {
            "as_published": attack.as_published(work["instance"]).mean(),
            "corrected": attack.corrected().mean(),
            "probed": search.relative_gain.mean(),
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
        instances: dict[tuple[str, int], list[Row]] = {
            (market.name, levels): [] for market in self.markets for levels in self.levels
        }
        for row in (row for task in results for row in task):
            instances[row["market"], row["levels"]].append(row)
        rows: list[Row] = []
        for (market_name, levels), of_cell in instances.items():
            row = {"market": market_name, "levels": levels, "instances": len(of_cell)}
            for measure in MEASURES:
                row |= spread(measure, from_seeds(np.array([each[measure] for each in of_cell])))
            rows.append(row)
        lines = [
            {"market": row["market"], "levels": row["levels"], "measured_by": label}
            | {f"violation{end}": row[f"{key}{end}"] for end in ("", "_low", "_high")}
            for key, label in (PLOTTED | {"privacy_bought": "share of privacy bought"}).items()
            for row in rows
        ]
        plot = Plot(
            "levels", "violation", "measured_by", "M", "mean gain or loss / cost; share",
            log=True, panel="market", log_x=True,
        )  # fmt: skip
        sentences = [_sentence(rows, market.name) for market in self.markets]
        return Finding(rows, plot, sentences, lines)


def _trained(market: Scenario, work: Work) -> Any:
    """An instance of M-RegretNet; its seed is the number of the instance."""
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


def _sentence(rows: list[Row], market: str) -> str:
    in_market = [row for row in rows if row["market"] == market]
    first, last = in_market[0], in_market[-1]
    changes = ", ".join(
        f"{label} {first[key]:.3g} to {last[key]:.3g}" for key, label in PLOTTED.items()
    )
    bought = f"privacy bought {first['privacy_bought']:.0%} to {last['privacy_bought']:.0%}"
    return f"{market}: from M = {first['levels']} to M = {last['levels']}: {changes}; {bought}"
