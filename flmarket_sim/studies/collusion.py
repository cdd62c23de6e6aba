"""Owners who lie together: a coalition of k, and one person under several names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from flmarket_sim.auctions import named
from flmarket_sim.errors import InputError
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import estimate
from flmarket_sim.strategy.coalitions import coalition, false_names
from flmarket_sim.strategy.search_effort import effort_of
from flmarket_sim.studies.study import (
    Count,
    Finding,
    Names,
    Plot,
    Progress,
    markets,
    melted,
    spread,
)

Sizes = Annotated[Sequence[Annotated[int, Field(ge=1)]], Field(min_length=1)]
Several = Annotated[Sequence[Annotated[int, Field(ge=2)]], Field(min_length=1)]


class CoalitionStudy:
    """What k of the bidders gain by bidding as one, against what the same k gain if each lies alone."""

    name = "coalition"

    def __init__(
        self,
        auctions: Names,
        sizes: Sizes = (1, 2, 3, 5),
        profiles: Count = 60,
        effort: str = "quick",
    ) -> None:
        effort_of(effort)
        self.auctions = {name: named(name) for name in auctions}
        self.sizes, self.profiles, self.effort = list(sizes), profiles, effort

    def run(self, scenario: Scenario, progress: Progress) -> Finding:
        if max(self.sizes) > scenario.market.bidders:
            raise InputError(
                f"a coalition of {max(self.sizes)} needs as many bidders, market.bidders is {scenario.market.bidders}"
            )
        truth, budget = markets(scenario, self.profiles)
        value = truth.value(truth.privacy_budget)
        rows, said, done = [], [], 0
        for name, auction in self.auctions.items():
            for size in self.sizes:
                members = np.zeros(truth.shape, bool)
                members[:, :size] = True  # bidders come in an order drawn by lot
                found = coalition(
                    auction,
                    truth,
                    budget,
                    members,
                    effort=self.effort,
                    seed=scenario.seed,
                    levels=scenario.market.levels,
                )
                worth = np.where(members, value, 0.0).sum(axis=1)
                row = {"auction": name, "members": size, "markets": self.profiles}
                row |= spread("gain_together", estimate(found.gain, weights=worth))
                row |= spread("gain_alone", estimate(found.alone_gain, weights=worth))
                rows.append(row)
                done += 1
                progress(done, len(self.auctions) * len(self.sizes))
            last = rows[-1]
            said.append(
                f"{name}: {last['members']} owners gain {last['gain_together']:.3f} of what they have to sell together, "
                f"{last['gain_alone']:.3f} if each lies alone"
            )
        plot = Plot(
            "members",
            "gain_together",
            "auction",
            "members of the coalition",
            "gain / value of all they have",
        )
        return Finding(rows, plot, said)


class FalseNamesStudy:
    """What an owner gains by appearing under several names, truthful about each part or not."""

    name = "false-names"

    def __init__(
        self, auctions: Names, names: Several = (2, 3), profiles: Count = 60, effort: str = "quick"
    ) -> None:
        effort_of(effort)
        self.auctions = {name: named(name) for name in auctions}
        self.names, self.profiles, self.effort = list(names), profiles, effort

    def run(self, scenario: Scenario, progress: Progress) -> Finding:
        truth, budget = markets(scenario, self.profiles)
        owner = np.zeros(self.profiles, np.int64)  # bidders come in an order drawn by lot
        rows, said, done = [], [], 0
        for name, auction in self.auctions.items():
            for number in self.names:
                found = false_names(
                    auction,
                    truth,
                    budget,
                    owner,
                    number,
                    effort=self.effort,
                    seed=scenario.seed,
                    levels=scenario.market.levels,
                )
                base = found.one_truthful
                row = {"auction": name, "names": number, "markets": self.profiles}
                row |= spread(
                    "gain_names", estimate(found.many_truthful - base, weights=found.cost)
                )
                row |= spread("gain_lie", estimate(found.one_lying - base, weights=found.cost))
                row |= spread(
                    "gain_both",
                    estimate(
                        np.maximum(found.many_lying, found.one_lying) - base, weights=found.cost
                    ),
                )
                rows.append(row)
                done += 1
                progress(done, len(self.auctions) * len(self.names))
            last = rows[-1]
            said.append(
                f"{name}: {last['names']} names alone bring {last['gain_names']:+.3f} of the value of all she has, "
                f"a lie under one name {last['gain_lie']:+.3f}, both together {last['gain_both']:+.3f}"
            )
        kinds = {"names": "gain_names", "a lie": "gain_lie", "both": "gain_both"}
        most = [row for row in rows if row["names"] == self.names[-1]]
        plot = Plot(
            "auction",
            "gain",
            "what",
            "",
            f"gain / value of all she has ({self.names[-1]} names)",
            bars=True,
            level=0.0,
        )
        return Finding(rows, plot, said, melted(most, "gain", "what", kinds))
