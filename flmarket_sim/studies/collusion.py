"""Owners who misreport together: a coalition of k, and one person under several names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from flmarket_sim.errors import InputError
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import estimate
from flmarket_sim.strategy.coalitions import coalition, false_names
from flmarket_sim.studies.study import (
    Auctions,
    Count,
    Finding,
    Plot,
    Row,
    SearchEffort,
    Work,
    auction_of,
    heavy_tailed,
    markets,
    melted,
    spread,
)

Sizes = Annotated[Sequence[Annotated[int, Field(ge=1)]], Field(min_length=1)]
Several = Annotated[Sequence[Annotated[int, Field(ge=2)]], Field(min_length=1)]


@dataclass(frozen=True)
class CoalitionStudy:
    """What k bidders gain by bidding as one, against what the same k gain if each lies alone.

    Gains are shares of the value of all that the coalition has, averaged over markets.
    """

    name = "coalition"
    auctions: Auctions
    sizes: Sizes = (1, 2, 3, 5)
    profiles: Count = 60
    effort: SearchEffort = "quick"

    def tasks(self, scenario: Scenario) -> list[Work]:
        if max(self.sizes) > scenario.market.bidders:
            raise InputError(
                f"a coalition of {max(self.sizes)} needs as many bidders, but market.bidders is "
                f"{scenario.market.bidders}"
            )
        return [
            {"auction": name, "members": size, "profiles": self.profiles, "effort": self.effort}
            for name in self.auctions
            for size in self.sizes
        ]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        truth, budget = markets(scenario, work["profiles"])
        members = np.zeros(truth.shape, bool)
        members[:, : work["members"]] = True  # bidders come in a random order
        result = coalition(
            auction_of(work["auction"], scenario),
            truth,
            budget,
            members,
            effort=work["effort"],
            seed=scenario.seed,
            levels=scenario.market.levels,
        )
        worth = np.where(members, truth.value(truth.privacy_budget), 0.0).sum(axis=1)
        row = {key: work[key] for key in ("auction", "members")} | {"markets": work["profiles"]}
        row |= spread("gain_together", estimate(result.gain / worth, truth.population))
        row |= spread("gain_alone", estimate(result.alone_gain / worth, truth.population))
        row |= heavy_tailed("gain_together", result.gain / worth, truth.population)
        return [row]

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        rows = [row for task in results for row in task]
        label = "gain / value of all they have"
        plot = Plot("members", "gain_together", "auction", "members of the coalition", label)
        largest = [row for row in rows if row["members"] == self.sizes[-1]]
        sentences = [
            f"{row['auction']}: {row['members']} owners gain {row['gain_together']:.3f} of what "
            f"they have to sell together, {row['gain_alone']:.3f} if each lies alone"
            for row in largest
        ]
        shown = ("auction", "members", "gain_together", "gain_alone", "gain_together_median")
        return Finding(rows, plot, sentences, shown=shown)


@dataclass(frozen=True)
class FalseNamesStudy:
    """What an owner gains by appearing under several names, truthful about each part or not.

    Gains are shares of the value of all that she has, averaged over markets.
    """

    name = "false-names"
    auctions: Auctions
    names: Several = (2, 3)
    profiles: Count = 60
    effort: SearchEffort = "quick"

    def tasks(self, scenario: Scenario) -> list[Work]:
        return [
            {"auction": name, "names": number, "profiles": self.profiles, "effort": self.effort}
            for name in self.auctions
            for number in self.names
        ]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        truth, budget = markets(scenario, work["profiles"])
        result = false_names(
            auction_of(work["auction"], scenario),
            truth,
            budget,
            np.zeros(work["profiles"], np.int64),  # bidders come in a random order
            work["names"],
            effort=work["effort"],
            seed=scenario.seed,
            levels=scenario.market.levels,
        )
        gains = {
            "gain_names": result.many_truthful,
            "gain_lie": result.one_lying,
            "gain_both": np.maximum(result.many_lying, result.one_lying),
        }
        row = {key: work[key] for key in ("auction", "names")} | {"markets": work["profiles"]}
        for key, utility in gains.items():
            gain = (utility - result.one_truthful) / result.cost
            row |= spread(key, estimate(gain, truth.population))
            row |= heavy_tailed(key, gain, truth.population)
        return [row]

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        rows = [row for task in results for row in task]
        kinds = {"names": "gain_names", "a lie": "gain_lie", "both": "gain_both"}
        most = [row for row in rows if row["names"] == self.names[-1]]
        label = f"gain / value of all she has ({self.names[-1]} names)"
        plot = Plot("auction", "gain", "what", "", label, bars=True, level=0.0)
        sentences = [
            f"{row['auction']}: {row['names']} names alone bring {row['gain_names']:+.3f} of the "
            f"value of all she has, a lie under one name {row['gain_lie']:+.3f}, both together "
            f"{row['gain_both']:+.3f}"
            for row in most
        ]
        shown = ("auction", "names", "gain_names", "gain_lie", "gain_both")
        return Finding(rows, plot, sentences, melted(most, "gain", "what", kinds), shown=shown)
