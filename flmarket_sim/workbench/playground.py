"""The playground: what becomes of everybody in one small market when one owner changes her bid.

The market is drawn from a scenario. The chosen owner reports another valuation, privacy budget or
number of records than she has; the others tell the truth. The answer has both worlds beside each
other: her truthful bid and her report, for the same owners, the same budget and the same luck.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim import aggregation
from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.market_error import MarketError
from flmarket_sim.aggregation.rule import weights_in
from flmarket_sim.auctions import auction_in, named
from flmarket_sim.auctions.auction import (
    Auction,
    certified_parts,
    check_budget,
    check_outcome,
    records_sold,
    sales_and_rest,
)
from flmarket_sim.auctions.play import Player
from flmarket_sim.errors import InputError
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.owners.family_table import family_names
from flmarket_sim.owners.population import draw_profiles
from flmarket_sim.perturbation.scenario_error import scenario_error
from flmarket_sim.scenario.scenario_file import load_scenario
from flmarket_sim.scenario.shipped import scenario_names

MOST_OWNERS = 30
DRAWS = 16  # of an auction that draws numbers
ASKS = np.round(np.linspace(0.1, 3.0, 30), 3)  # of what the truth asks, for the curve
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """One market of the playground, and the report of one owner in it.

    asks, privacy_budget and data_size are factors of her truth.
    """

    scenario: str
    seed: int
    owners: int
    auction: str
    rule: str
    factor: float
    owner: int
    asks: float
    privacy_budget: float
    data_size: float

    @classmethod
    def of(cls, data: Any) -> Setting:
        """The setting of a request, refused by name where a value is wrong."""
        if not isinstance(data, dict):
            raise InputError("a market of the playground is an object with its settings")
        limits: dict[str, tuple[float, float]] = {
            "seed": (0, 2**32), "owners": (2, MOST_OWNERS), "factor": (0.0, 100.0),
            "owner": (0, MOST_OWNERS - 1), "asks": (0.001, 1000.0),
            "privacy_budget": (0.001, 1.0), "data_size": (0.001, 1.0),
        }  # fmt: skip
        found: dict[str, Any] = {}
        for name, (least, most) in limits.items():
            value: Any = data.get(name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or not least <= value <= most:
                raise InputError(f"{name} must be a number from {least:g} to {most:g}")
            whole = name in ("seed", "owners", "owner")
            found[name] = int(value) if whole else float(value)
        for name in ("scenario", "auction", "rule"):
            if not isinstance(data.get(name), str) or len(data[name]) > 200:
                raise InputError(f"{name} must be a name")
            found[name] = data[name]
        if found["scenario"] not in scenario_names():
            raise InputError(f"no scenario {found['scenario']!r} comes with flmarket")
        if found["owner"] >= found["owners"]:
            raise InputError(f"owner must be at most {found['owners'] - 1}")
        return cls(**found)


def play(setting: Setting) -> dict[str, Any]:
    """Both worlds: what everybody sells, gets and earns by the truth, and after the report."""
    truth, levels, error = _market(setting.scenario, setting.owners, setting.seed)
    auction = _auction(setting.auction, setting.scenario)
    rule = aggregation.create(setting.rule)
    size = 1.0 if "data_size" in certified_parts(auction) else setting.data_size
    both = _stacked(truth, 2)
    factors = np.array([[1.0, setting.asks], [1.0, setting.privacy_budget], [1.0, size]])
    worlds = _worlds(auction, rule, both, setting, factors, levels, error)
    return {
        "owners": [
            {
                "family": str(family_names(truth.family[0, i])),
                "rate": float(truth.rate[0, i]),
                "privacy_budget": float(truth.privacy_budget[0, i]),
                "data_size": int(truth.data_size[0, i]),
                "value": float(truth.value(truth.privacy_budget)[0, i]),
            }
            for i in range(setting.owners)
        ],
        "budget": float(setting.factor * truth.total_value()[0]),
        "error_kind": error.kind,
        "draws": worlds["draws"],
        "certified": list(certified_parts(auction)),
        "truth": _world(worlds, 0),
        "report": _world(worlds, 1),
    }


def curve(setting: Setting) -> dict[str, Any]:
    """Her utility, payment and privacy loss for every factor of her true valuation in ASKS."""
    truth, levels, error = _market(setting.scenario, setting.owners, setting.seed)
    auction = _auction(setting.auction, setting.scenario)
    size = 1.0 if "data_size" in certified_parts(auction) else setting.data_size
    many = len(ASKS)
    factors = np.stack([ASKS, np.full(many, setting.privacy_budget), np.full(many, size)])
    worlds = _worlds(auction, None, _stacked(truth, many), setting, factors, levels, error)
    return {"asks": ASKS.tolist()} | {
        name: _plain(worlds[name][:, setting.owner])
        for name in ("utility", "payment", "privacy_loss")
    }


def _worlds(
    auction: Auction,
    rule: Any,
    truth: Profiles,
    setting: Setting,
    factors: Floats,
    levels: int,
    error: MarketError,
) -> dict[str, Any]:
    """Means over draws in K markets that differ in one owner's report, by factors (3, K)."""
    rate, budget, size = truth.rate.copy(), truth.privacy_budget.copy(), truth.data_size.copy()
    rate[:, setting.owner] *= factors[0]
    budget[:, setting.owner] *= factors[1]
    size[:, setting.owner] = np.maximum(1.0, np.floor(size[:, setting.owner] * factors[2]))
    bids = Profiles(truth.family, rate, budget, size).bids(levels)
    money = check_budget(bids, setting.factor * truth.total_value())
    player = Player.of(auction, bids, money, setting.seed, DRAWS)
    sums: dict[str, Any] = dict.fromkeys(
        ("privacy_loss", "payment", "cost", "utility", "weight", "error"), 0.0
    )
    draws = player.draws if player.random else 1
    for outcome in player.outcomes(bids, money):
        checked = check_outcome(setting.auction, outcome, bids, money)
        cost = truth.value(checked.privacy_loss, records_sold(checked, bids))
        takes = checked.payment >= cost * (1 - 1e-9)  # others decline, as in the market
        sums["privacy_loss"] += np.where(takes, checked.privacy_loss, 0.0) / draws
        sums["payment"] += np.where(takes, checked.payment, 0.0) / draws
        sums["cost"] += np.where(takes, cost, 0.0) / draws
        sums["utility"] += np.where(takes, checked.payment - cost, 0.0) / draws
        if rule is not None:
            loss, sizes = sales_and_rest(checked, bids.data_size)
            loss[:, : takes.shape[1]] = np.where(takes, checked.privacy_loss, 0.0)
            weights = weights_in(rule, loss, sizes, error)
            sums["weight"] += weights[:, : takes.shape[1]] / draws
            sums["error"] += error_bound_in(error, weights, loss, sizes).total / draws
    return sums | {"draws": draws}


def _world(worlds: dict[str, Any], place: int) -> dict[str, Any]:
    columns = ("privacy_loss", "payment", "cost", "utility", "weight")
    shown = {name: _plain(worlds[name][place]) for name in columns}
    totals = {
        "spent": float(worlds["payment"][place].sum()),
        "privacy_sold": float(worlds["privacy_loss"][place].sum()),
    }
    return shown | totals | {"error": _plain(worlds["error"][place : place + 1])[0]}


def _plain(values: Floats) -> list[float | None]:
    return [float(f"{value:.7g}") if math.isfinite(value) else None for value in values.tolist()]


def _stacked(truth: Profiles, count: int) -> Profiles:
    return truth.take(np.zeros(count, int))


@lru_cache(maxsize=32)
def _market(scenario: str, owners: int, seed: int) -> tuple[Profiles, int, MarketError]:
    """One market of a shipped scenario with so many owners, its levels, and what it counts."""
    loaded = load_scenario(scenario, market__bidders=owners)
    return draw_profiles(loaded, 1, seed), loaded.market.levels, scenario_error(loaded)


@lru_cache(maxsize=64)
def _auction(name: str, scenario: str) -> Auction:
    """An auction, made once and set for the error of the scenario's market."""
    return auction_in(named(name), scenario_error(load_scenario(scenario)))
