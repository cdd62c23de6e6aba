"""Whether a larger M makes M-RegretNet more truthful (paper, RQ4).

The study measures instances of M-RegretNet for each M: those that the authors published, or
instances that it trains.
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
from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.rule import weights_in
from flmarket_sim.auctions.play import expected_utility, measured_against
from flmarket_sim.errors import InputError
from flmarket_sim.paper.paper_market import PaperMarket, PaperMarkets, file_identity
from flmarket_sim.paper.published_attack import Attack
from flmarket_sim.paper.verdicts import AUTHORS, OURS
from flmarket_sim.perturbation.scenario_error import scenario_error
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

OVER_INSTANCES = (
    "Intervals are 95 % confidence intervals of the mean over instances (Student), each measured "
    "on populations of its own."
)
MEASURES = (
    "as_published",
    "axis_mended",
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
    "axis_mended": "axis mended",
    "corrected": "corrected metric",
    "probed": "probe",
    "ir_as_published": "IR violation as published",
}


class Levels:
    """Regret and IR violation of M-RegretNet by its number of levels M, over several instances.

    With `authors`, the folder of the weights that the authors published, the instances are theirs.
    Otherwise (and with `train = true` besides) there are `instances` that differ in their seed,
    each trained by the package's `fast` settings (menus of M levels, and a coin for who comes
    first: docs/learned-auctions.md) with these `steps`, `batch` and `tries`. Every instance is
    measured on populations of its own, which no training saw, at budget factors of the scenario's
    range.

    as_published, axis_mended        regret by the authors' procedure, and with its axis mended, on
                                     the first `attacked` markets, by `ascent` gradient steps (the
                                     paper's J)
    corrected                        regret by the corrected metric, on the same markets
    probed                           regret by the probe, on the first `probed` markets
    ir_violation, ir_as_published    IR violation in expectation, and of one draw
    privacy_bought                   share of the privacy budgets that is bought
    error_bound                      under OptAggr, over the draws that buy something
    invalid                          share of the draws that buy nothing
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
        probed: Count = 5,
        effort: SearchEffort = "standard",
        ascent: Count = 100,
        authors: str | None = None,
        train: bool | None = None,
        quick: dict[str, Any] | None = None,
    ) -> None:
        for key, count in (("attacked", attacked), ("probed", probed)):
            if count > profiles:
                raise InputError(
                    f"'{key}' is how many of the {profiles} profiles are {key}; "
                    f"{count} are too many"
                )
        self.markets, self.levels, self.instances = list(markets), list(levels), instances
        self.authors, self.train = authors, authors is None if train is None else train
        self.training = {"steps": steps, "batch": batch, "tries": tries}
        self.sample = {
            "profiles": profiles,
            "attacked": attacked,
            "probed": probed,
            "effort": effort,
            "ascent": ascent,
        }

    def tasks(self, scenario: Scenario) -> list[Work]:
        tasks = []
        for market in self.markets:
            for levels in self.levels:
                place = {"market": market.model_dump(), "levels": levels} | self.sample
                files = market.published_instances(levels, self.authors)[: self.instances]
                tasks += [
                    place
                    | {"instance": instance, "file": str(path), "weights": file_identity(path)}
                    for instance, path in enumerate(files)
                ]
                if self.train:
                    tasks += [
                        place | {"instance": instance} | self.training
                        for instance in range(self.instances)
                    ]
        if not tasks:
            raise InputError(
                f"{self.authors} has no published instance of M-RegretNet with M in "
                f"{self.levels}; train = true trains some"
            )
        return sorted(tasks, key=lambda work: int(work["instance"]))

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        market = PaperMarket.model_validate(work["market"]).of(scenario)
        published, instance = "file" in work, work["instance"]
        auction = _published(work) if published else _trained(market, work)
        truth, budget = markets(market, work["profiles"], seed=scenario.seed + 1 + instance)
        few, some = slice(0, work["probed"]), slice(0, work["attacked"])
        attack = Attack(auction, truth.take(some), budget[some], work["ascent"])
        bids = truth.bids(work["levels"])
        utility, cost = expected_utility(auction, truth, bids, budget)
        outcome = auction.decide(bids, budget, np.random.default_rng(instance))
        counted, loss = scenario_error(scenario), outcome.privacy_loss
        weights = weights_in(aggregation.create("opt-aggr"), loss, truth.data_size, counted)
        error = error_bound_in(counted, weights, loss, truth.data_size).total
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
            "as_published": attack.as_published(instance).mean(),
            "axis_mended": attack.axis_mended(instance).mean(),
            "corrected": attack.corrected().mean(),
            "probed": search.relative_gain.mean(),
            "ir_violation": (np.maximum(-utility, 0.0) / measured_against(truth, cost)).mean(),
            "ir_as_published": Attack(auction, truth, budget).drawn_shortfall().mean(),
            "privacy_bought": share.mean(),
            "error_bound": error[valid].mean() if valid.any() else float("nan"),
            "invalid": 1 - valid.mean(),
        }
        place = {"market": work["market"]["name"], "levels": work["levels"]}
        return [
            place
            | {"networks": AUTHORS if published else OURS}
            | {key: float(value) for key, value in measured.items()}
        ]

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        measured = [row for task in results for row in task]
        groups: dict[tuple[str, str, int], list[Row]] = {
            (networks, market.name, levels): []
            for networks in (OURS, AUTHORS)
            for market in self.markets
            for levels in self.levels
        }
        for row in measured:
            groups[row["networks"], row["market"], row["levels"]].append(row)
        rows: list[Row] = []
        for (networks, market_name, levels), instances in groups.items():
            if not instances:
                continue
            row = {"market": market_name, "networks": networks, "levels": levels}
            row["instances"] = len(instances)
            for measure in MEASURES:
                row |= spread(measure, from_seeds(np.array([each[measure] for each in instances])))
            rows.append(row)
        lines = [
            {"panel": f"{row['market']}, {row['networks']}", "levels": row["levels"]}
            | {"measured_by": label}
            | {f"violation{end}": row[f"{key}{end}"] for end in ("", "_low", "_high")}
            for key, label in (PLOTTED | {"privacy_bought": "share of privacy bought"}).items()
            for row in rows
        ]
        plot = Plot(
            "levels", "violation", "measured_by", "M", "mean gain or loss / cost; share",
            log=True, panel="panel", log_x=True,
        )  # fmt: skip
        places = dict.fromkeys((row["market"], row["networks"]) for row in rows)
        sentences = [_sentence(rows, *place) for place in places]
        shown = ("market", "networks", "levels", "as_published", "probed", "ir_as_published")
        return Finding(rows, plot, sentences, lines, OVER_INSTANCES, shown=shown)


def _published(work: Work) -> Any:
    name = "regretnet" if work["levels"] == 1 else "m-regretnet"
    return auctions.create(name, weights=work["file"])


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


def _sentence(rows: list[Row], market: str, networks: str) -> str:
    here = [row for row in rows if (row["market"], row["networks"]) == (market, networks)]
    first, last = here[0], here[-1]
    changes = ", ".join(
        f"{label} {first[key]:.3g} to {last[key]:.3g}" for key, label in PLOTTED.items()
    )
    bought = f"privacy bought {first['privacy_bought']:.1%} to {last['privacy_bought']:.1%}"
    return (
        f"{market}, {networks}: from M = {first['levels']} to M = {last['levels']}: {changes}; "
        f"{bought}"
    )
