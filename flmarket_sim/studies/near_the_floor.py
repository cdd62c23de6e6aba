"""How near can truth come? The error of auctions over the second-best floor, by kappa and budget.

Budgets are public (docs/second-best.md): a factor times what everything would be worth at the mean
rate. Owners report the truth, also to auctions that are not truthful.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from flmarket_sim import aggregation, auctions
from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.market_error import (
    COORDINATE_KAPPA,
    MarketError,
    coordinate_error,
    error_of_kappa,
)
from flmarket_sim.aggregation.rule import weights_in
from flmarket_sim.auctions import auction_in
from flmarket_sim.auctions.auction import Auction, Outcome, sales_and_rest
from flmarket_sim.auctions.auction_name import AuctionName
from flmarket_sim.auctions.first_best import first_best
from flmarket_sim.auctions.play import Player
from flmarket_sim.auctions.second_best import public_budget, second_best
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.owners.population import draw_markets
from flmarket_sim.owners.rate_prior import rate_prior
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import estimate
from flmarket_sim.studies.study import Count, Finding, Names, Plot, Row, Work, spread

Floats = NDArray[np.float64]
Kappas = Annotated[Sequence[Annotated[float, Field(gt=0)]], Field(min_length=1)]
RANGES = ((0.1, 0.2), (0.2, 0.4), (0.4, 0.7), (0.7, 1.0), (1.0, 1.5), (1.5, 2.0))
WHOLE = (0.1, 2.0)
MARKETS_A_TASK = 250
AVERAGED = 5  # one market in so many also gets the floor of budgets that hold on average
FIRST_BEST = "first-best"
RANKED_BY = " by "  # between the name of an auction that ranks owners and what it ranks them by


def _auction(text: str) -> Auction:
    """The auction behind a name as in `auctions.named`; NAME by VALUE ranks owners by that value
    (`all-in-critical by precision`)."""
    table = AuctionName.parse(text).table
    plain, by, value = str(table.pop("name")).partition(RANKED_BY)
    auction: Auction = auctions.create(plain, **table, **({"value": value} if by else {}))
    return auction


def _known(names: Sequence[str]) -> Sequence[str]:
    for name in names:
        _auction(name)
    return names


@dataclass(frozen=True)
class NearTheFloor:
    """Mean errors by auction, kappa and range of budget factors, over three yardsticks.

    over_floor       over the floor of mechanisms whose budget holds every time
    over_average     over the floor of mechanisms whose budget holds on average, in a part of the
                     markets
    over_first_best  over the best purchase found at true valuations
    floor_gap        by which share the search may have made the floor too high
    """

    name = "second-best"
    auctions: Annotated[Names, AfterValidator(_known)]
    kappas: Kappas = (8.0, 4880.0)
    profiles: Count = 2000

    def tasks(self, scenario: Scenario) -> list[Work]:
        """Yardsticks for some markets at a time, and every auction for all of them."""
        parts: list[Work] = [{"first": first} for first in range(0, self.profiles, MARKETS_A_TASK)]
        parts += [{"auction": name} for name in self.auctions]
        return [
            {"kappa": kappa, "profiles": self.profiles} | part
            for kappa in self.kappas
            for part in parts
        ]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        """One row for each market."""
        truth, factor = draw_markets(scenario, work["profiles"], None, scenario.seed)
        budget = public_budget(truth, factor, rate_prior(scenario))
        error = _error_of(work["kappa"])
        if "auction" in work:
            bids = truth.bids(scenario.market.levels)
            auction = auction_in(_auction(work["auction"]), error)
            outcome = Player.of(auction, bids, budget, scenario.seed).decide(bids, budget)
            columns = {work["auction"]: _error(outcome, truth, error)}
            market = np.arange(len(factor))
        else:
            market = np.arange(len(factor))[work["first"] : work["first"] + MARKETS_A_TASK]
            some = truth.take(market)
            columns = {"factor": factor[market], "population": some.population}
            columns |= _yardsticks(scenario, some, budget[market], error)
        names = list(columns)
        return [
            {"kappa": work["kappa"], "market": int(number)}
            | dict(zip(names, map(float, values), strict=True))
            for number, *values in zip(market, *columns.values(), strict=True)
        ]

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        joined: dict[tuple[float, int], Row] = {}
        for row in (row for task in results for row in task):
            joined.setdefault((row["kappa"], row["market"]), {}).update(row)
        markets = list(joined.values())
        rows = [
            _row(some, name, kappa, factors)
            for kappa in self.kappas
            for factors in (WHOLE, *RANGES)
            if (some := _markets_at(markets, kappa, factors))
            for name in (FIRST_BEST, *self.auctions)
        ]
        drawn = [
            row | {"middle": float(np.mean(RANGES[place]))}
            for row in rows
            if row["auction"] != FIRST_BEST
            for place, factors in enumerate(RANGES)
            if row["budget_factor"] == _label(factors)
        ]
        plot = Plot(
            "middle",
            "over_floor",
            "auction",
            "budget factor",
            "error / floor",
            panel="kappa",
            level=1.0,
            top=2.5,
        )
        whole = [row for row in rows if row["budget_factor"] == _label(WHOLE)]
        shown = (
            "kappa",
            "budget_factor",
            "auction",
            "over_floor",
            "over_first_best",
            "error_bound",
        )
        return Finding(
            rows, plot, _sentences(rows, self.kappas), drawn, shown=shown, shown_rows=whole
        )


def _yardsticks(
    scenario: Scenario, truth: Profiles, budget: Floats, error: MarketError
) -> dict[str, Floats]:
    """(K,) the floors and first-best of some markets."""
    prior, seed = rate_prior(scenario), scenario.seed
    always = second_best(truth, budget, prior, error, prove=True, seed=seed)
    some = slice(None, None, AVERAGED)
    average = np.full(len(budget), np.nan)
    average[some] = second_best(
        truth.take(some), budget[some], prior, error, holds="on average", seed=seed
    ).floor
    best = first_best(truth, budget, error=error).error_bound
    return {
        "floor": always.floor,
        "lower": always.lower_bound,
        "average": average,
        FIRST_BEST: best,
    }


def _error_of(kappa: float) -> MarketError:
    """The paper's reading at its kappa, and V = kappa / e^2 at others."""
    return coordinate_error() if kappa == COORDINATE_KAPPA else error_of_kappa(kappa)


def _error(outcome: Outcome, truth: Profiles, error: MarketError) -> Floats:
    loss, size = sales_and_rest(outcome, truth.data_size)
    weights = weights_in(aggregation.create("opt-aggr"), loss, size, error)
    return error_bound_in(error, weights, loss, size).total


def _label(factors: tuple[float, float]) -> str:
    return f"{factors[0]:g} to {factors[1]:g}"


def _markets_at(markets: list[Row], kappa: float, factors: tuple[float, float]) -> list[Row]:
    low, high = factors
    return [row for row in markets if row["kappa"] == kappa and low <= row["factor"] <= high]


def _row(some: list[Row], name: str, kappa: float, factors: tuple[float, float]) -> Row:
    """One auction in some markets, those of one kappa and one range of factors."""

    def column(key: str) -> Floats:
        return np.array([row[key] for row in some], np.float64)

    population = column("population").astype(np.int64)
    error, floor, average = column(name), column("floor"), column("average")
    valid, averaged = np.isfinite(error), np.isfinite(average)
    row: Row = {"kappa": kappa, "budget_factor": _label(factors), "auction": name}
    row |= spread("error_bound", estimate(error, population))
    row |= spread("over_floor", estimate(error, population, floor))
    row |= spread(
        "over_average", estimate(error[averaged], population[averaged], average[averaged])
    )
    row["over_first_best"] = float(error[valid].mean() / column(FIRST_BEST)[valid].mean())
    row["invalid"] = float(1.0 - valid.mean())
    row["largest_error"] = float(error[valid].max())
    row["floor"] = float(floor.mean())
    row["floor_gap"] = float(1.0 - column("lower").mean() / floor.mean())
    row["markets"] = len(some)
    return row


def _sentences(rows: list[Row], kappas: Sequence[float]) -> list[str]:
    """The auction nearest to the floor at every kappa, over all budgets."""
    made = []
    for kappa in kappas:
        at = [
            row
            for row in rows
            if row["kappa"] == kappa
            and row["budget_factor"] == _label(WHOLE)
            and row["auction"] != FIRST_BEST
        ]
        best = min(at, key=lambda row: float(row["over_floor"]))
        made.append(
            f"kappa = {kappa:g}: {best['auction']} is nearest to the floor, at "
            f"{best['over_floor']:.3f} [{best['over_floor_low']:.3f}, "
            f"{best['over_floor_high']:.3f}] times; the search may have made the floor "
            f"{best['floor_gap']:.1%} too high"
        )
    return made
