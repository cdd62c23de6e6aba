"""The draws of a market of the card: owners and public budgets, the same for every mechanism."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.second_best import public_budget
from flmarket_sim.league.card import Card, CardMarket, card
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.owners.population import draw_markets
from flmarket_sim.owners.rate_prior import rate_prior

Floats = NDArray[np.float64]


def draws(played: Card, market: CardMarket, count: int | None = None) -> tuple[Profiles, Floats]:
    """The first `count` draws of a market, or all: true owners (K, n) and budgets (K,).

    Budgets depend on public facts alone, as the floor of truthful mechanisms demands.
    """
    truth, budget = _all(market.name) if played is card() else _drawn(played, market)
    return truth.take(slice(0, count)), budget[:count]


@lru_cache(maxsize=16)
def _all(name: str) -> tuple[Profiles, Floats]:
    return _drawn(card(), card().market(name))


def _drawn(played: Card, market: CardMarket) -> tuple[Profiles, Floats]:
    scenario = played.scenario(market)
    truth, uniform = draw_markets(scenario, market.draws, None, scenario.seed)
    low, high = scenario.budget.factor or (0.1, 2.0)
    factor = low + (high - low) * (uniform - 0.1) / 1.9
    return truth, public_budget(truth, factor, rate_prior(scenario))
