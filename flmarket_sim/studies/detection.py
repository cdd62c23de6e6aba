"""How many cheats a check finds, by how many honest owners it accuses; and what no test can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from flmarket_sim.checks.undetectable import cap_chances, most_power, two_events_power
from flmarket_sim.eventlog.reader import read_events, read_owners
from flmarket_sim.experiments.market_runs import load_data, ran
from flmarket_sim.learning.buyer_model import create_model, gradient_dimension
from flmarket_sim.perturbation.perturbation import delta_of
from flmarket_sim.perturbation.priv_unit import PrivUnit
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.part import Probability
from flmarket_sim.statistics import OVER_RUNS, Estimate, from_seeds
from flmarket_sim.studies.cheating import Checks, check_table
from flmarket_sim.studies.pipelines import Variant, Variants
from flmarket_sim.studies.study import Count, Factors, Finding, Plot, Row, Work, spread

BEST_TEST = "the best test"  # of a broker who knows each honest gradient
LEVELS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0)
SAID = 0.05  # the share of honest owners in the sentences
NOISE = "nothing-but-noise"
Floats = NDArray[np.float64]


def _known(name: str) -> str:
    registry.cheats.get(name)
    return name


Cheat = Annotated[str, Field(min_length=1), AfterValidator(_known)]


@dataclass(frozen=True)
class Detection:
    """Receiver operating curves: power against false positives, by dimension and privacy loss.

    A share of the owners cheats in one way, and every check judges the same messages. No
    consequence follows. A row is one share of honest messages (`false_accused`) at which a check
    may accuse; who looks most suspicious by the p-value is accused first.

    caught   share of the cheats' messages that are accused then. Messages of equal p-value are
             accused by lot
    bound    for `nothing-but-noise`, the power that no test exceeds at that share, whatever it
             knows: exact for PrivUnit, and else by the promise of privacy alone, e and delta.
             Empty for other cheats, whose messages are no releases of what they sold
    """

    name = "detection"
    markets: Variants
    checks: Checks
    cheat: Cheat = NOISE
    losses: Factors = (0.5, 1.0, 2.0, 8.0)
    share: Probability = 0.3
    seeds: Count = 8

    def tasks(self, scenario: Scenario) -> list[Work]:
        return [
            {"seed": seed, "market": market.model_dump(), "loss": loss, "check": check}
            | {"cheat": self.cheat, "share": self.share}
            for seed in range(scenario.seed, scenario.seed + self.seeds)
            for market in self.markets
            for loss in self.losses
            for check in self.checks
        ]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        played = Variant.model_validate(work["market"]).of(
            scenario,
            seed=work["seed"],
            owners__privacy_budget=[work["loss"], work["loss"]],
            owners__cheats=[{"name": work["cheat"], "share": work["share"]}],
            check=check_table(scenario, work["check"]) | {"consequences": []},
        )
        data = load_data(played)
        with ran(played, data) as folder:
            verdicts = read_events(folder, "verdict")
            names = read_owners(folder).column("cheat").to_pylist()
        receiver = verdicts.column("receiver").to_numpy(zero_copy_only=False)
        p_values = verdicts.column("p_value").fill_null(1.0).to_numpy(zero_copy_only=False)
        cheats = np.array([name is not None for name in names])[receiver]
        streams = Streams(played.seed)
        model = None if data is None else create_model(played.model, data, streams, 0)
        dimension = gradient_dimension(played.model, model)
        cell = {"market": work["market"]["name"], "dimension": dimension}
        cell |= {key: work[key] for key in ("seed", "loss", "check")}
        caught = power(p_values[~cheats], p_values[cheats], np.array(LEVELS))
        limit = bound(played, work["cheat"], work["loss"], dimension)
        return [
            cell | {"false_accused": level, "caught": float(share), "bound": float(most)}
            for level, share, most in zip(LEVELS, caught, limit, strict=True)
        ]

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        cells: dict[tuple[str, int, float, str, float], list[Row]] = {}
        for row in (row for task in results for row in task):
            keys = ("market", "dimension", "loss", "check", "false_accused")
            market, dimension, loss, check, level = (row[key] for key in keys)
            cells.setdefault((market, dimension, loss, check, level), []).append(row)
        rows: list[Row] = []
        drawn: list[Row] = []
        for (market, dimension, loss, check, level), runs in cells.items():
            row = {"market": market, "dimension": dimension, "privacy_loss": loss, "check": check}
            row |= {"seeds": len(runs), "false_accused": level, "bound": runs[0]["bound"]}
            row |= spread("caught", from_seeds(np.array([run["caught"] for run in runs])))
            rows.append(row)
            drawn.append(row | {"panel": f"{market}, e = {loss:g}"})
        best = [
            row | {"check": BEST_TEST} | spread("caught", Estimate(*[row["bound"]] * 3))
            for row in drawn
            if row["check"] == self.checks[0] and np.isfinite(row["bound"])
        ]
        plot = Plot(
            "false_accused", "caught", "check", "share of honest messages accused",
            "share of cheats' messages accused", panel="panel",
        )  # fmt: skip
        said = [row for row in rows if row["false_accused"] == SAID]
        shown = ("market", "privacy_loss", "check", "caught", "bound")
        sentences = [_sentence(market.name, said) for market in self.markets]
        return Finding(rows, plot, sentences, drawn + best, OVER_RUNS, shown, said)


def power(honest: Floats, cheats: Floats, levels: Floats) -> Floats:
    """(L,) the share of cheats with the smallest p-values, where (L,) shares of honest ones have.

    A threshold is a p-value; equal ones are taken in part, as if by lot.
    """
    if not (len(honest) and len(cheats)):
        return np.full(len(levels), np.nan)
    steps = np.unique(np.concatenate([honest, cheats]))
    false, true = (
        np.concatenate([[0.0], np.searchsorted(np.sort(values), steps, side="right") / len(values)])
        for values in (honest, cheats)
    )
    return np.asarray(np.interp(levels, false, true))


def bound(scenario: Scenario, cheat: str, loss: float, dimension: int) -> Floats:
    """(L,) the power that no test against a cheat exceeds; nan where none is known."""
    levels = np.array(LEVELS)
    if cheat != NOISE:
        return np.full(len(levels), np.nan)
    release = scenario.perturbation
    if release.name == PrivUnit.name:
        length = str(release.options.get("length", "kept"))
        return two_events_power(levels, *cap_chances(loss, dimension, length))
    made = registry.perturbations.create(release.name, **release.options)
    return most_power(levels, loss, delta_of(made))


def _sentence(market: str, said: Sequence[Row]) -> str:
    own = [row for row in said if row["market"] == market]
    parts = []
    for loss in dict.fromkeys(row["privacy_loss"] for row in own):
        here = [row for row in own if row["privacy_loss"] == loss]
        best = max(here, key=lambda row: row["caught"])
        limit = f" (no test: {best['bound']:.0%})" if np.isfinite(best["bound"]) else ""
        ends = f"{best['caught']:.0%} [{best['caught_low']:.0%}, {best['caught_high']:.0%}]"
        parts.append(f"at e = {loss:g} {best['check']} {ends}{limit}")
    return (
        f"{market}, {SAID:.0%} of honest messages accused, most cheats caught: {'; '.join(parts)}"
    )
