"""Second-best: an error that no truthful mechanism can beat on average, a yardstick for mechanisms.

docs/second-best.md derives it. Rates are secret, drawn from a prior; families, privacy budgets,
data sizes and the buyer's budget B are public. For any price of money mu >= 0,

    E[ERR of any truthful mechanism] >= E[min over e of {ERR(e) + mu sum_i psi_i c_i(e_i)}] - mu B

with c_i the cost at rate 1 and psi_i = r_i + F(r_i) / f(r_i) the virtual rate. A mechanism that is
truthful in dominant strategies and keeps the budget every time also obeys the bound with a price
that depends on the rates, mu(r) = mu exp(a (z(r) - 1)), z the mean rate weighted by cost, and

    psi_i mu -> mu(r) r_i + integral from low to r_i of mu(s, r_-i) f(s) ds / f(r_i).

The price of a market is chosen on rates that are drawn anew: a price that saw the rates of the
market would make the floor too high. It is the price at which the purchases for these rates cost
the budget, which is where the bound is highest. The inner minimum is a search
(`penalised_purchase`), which may be too high; `lower_bound` is below it for certain
(`proved_bound`). Exact OptAggr has the least error of all weights, so the floor holds for every
aggregation rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.aggregation.market_error import MarketError, coordinate_error
from flmarket_sim.aggregation.noise_curve import NoiseCurve
from flmarket_sim.auctions.money_search import optimal_error
from flmarket_sim.auctions.penalised_purchase import penalised_purchase
from flmarket_sim.auctions.proved_bound import proved_penalised_bound
from flmarket_sim.errors import InputError
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.owners.rate_prior import RatePrior

Floats = NDArray[np.float64]
BudgetHolds = Literal["every time", "on average"]

DRAWS = 6  # of the rates of a market, to choose its price
HALVINGS = 6  # of the range of prices
RANGE = (-4.0, 4.0)  # of log (mu B / ERR(everything))
SLOPES = (-1.0, -2.0, -3.0)  # a, the change of the price with the rates
SLOPE_CHOSEN_ON = 24  # markets
AT_ONCE = 500  # markets of one search


@dataclass(frozen=True)
class SecondBest:
    """The floor in K markets. Its mean over markets is what the mean error of a truthful mechanism
    cannot be below; a single market's error can.

    floor           (K,) at the rates of the markets, by the best purchases found
    lower_bound     (K,) the same by a proved bound of the inner minimum; minus infinity unless it
                    was asked for
    price_of_money  (K,) mu(r) at the rates of the markets
    spending        (K,) what the purchases cost at virtual rates
    privacy_loss    (K, n) the purchases
    slope           a, how the price changes with the rates; 0 where the budget holds on average
    """

    floor: Floats
    lower_bound: Floats
    price_of_money: Floats
    spending: Floats
    privacy_loss: Floats
    slope: float

    @property
    def gap(self) -> float:
        """The share of the mean floor by which the search may have made it too high."""
        return float(1.0 - self.lower_bound.mean() / self.floor.mean())


def second_best(
    truth: Profiles,
    budget: ArrayLike,
    prior: RatePrior,
    error: MarketError | None = None,
    *,
    holds: BudgetHolds = "every time",
    prove: bool = False,
    seed: int = 0,
) -> SecondBest:
    """The floor of K markets whose rates are drawn from the prior, with public budgets (K,).

    `holds` says which mechanisms it is a floor of: those truthful in dominant strategies whose
    budget holds "every time", or also Bayesian ones whose budget holds "on average". `error` is
    what the markets count; None is the paper's reading. Budgets must not depend on the rates:
    `public_budget` makes such budgets of budget factors.
    """
    counted = coordinate_error() if error is None else error
    money = np.asarray(budget, np.float64)
    if money.shape != (truth.shape[0],) or not (np.isfinite(money) & (money > 0)).all():
        raise InputError(f"budget must be finite, positive and of shape ({truth.shape[0]},)")
    noise = NoiseCurve.of(counted, float(truth.privacy_budget.max()))
    public = _PublicFacts.of(truth, money, prior, noise)
    slope = _best_slope(public, prior, noise, seed) if holds == "every time" else 0.0
    price = _chosen_price(public, prior, noise, slope, seed)
    market = public.priced(truth.rate, price, slope, prior)
    found = [_searched(market, rows, noise) for rows in _parts(len(money))]
    loss, value = (np.concatenate(column) for column in zip(*found, strict=True))
    owed, unit = market.price * money, counted.radius**2
    lower = np.full(len(money), -np.inf)
    if prove:
        lower = proved_penalised_bound(market.owners, market.price, loss, error=counted)
        lower = np.minimum(lower, value * unit) - owed * unit
    spending = market.owners.value(loss).sum(axis=1)
    return SecondBest(value * unit - owed * unit, lower, market.price * unit, spending, loss, slope)


def public_budget(truth: Profiles, factor: ArrayLike, prior: RatePrior) -> Floats:
    """(K,) factors times what everything for sale would be worth at the mean rate."""
    return np.asarray(factor, np.float64) * _at_mean_rate(truth, prior).total_value()


def _at_mean_rate(truth: Profiles, prior: RatePrior) -> Profiles:
    family, rate, *rest = truth.types
    return Profiles(family, np.full_like(rate, prior.mean), *rest)


@dataclass(frozen=True)
class _PricedMarket:
    """Owners with virtual rates in place of their rates, and the prices of money (K,)."""

    owners: Profiles
    price: Floats


@dataclass(frozen=True)
class _PublicFacts:
    """What a price may depend on: owners at the mean rate, budgets (K,), each owner's part of the
    worth of everything (K, n), and the error when everything is bought (K,)."""

    owners: Profiles
    budget: Floats
    weight: Floats
    everything: Floats

    @classmethod
    def of(
        cls, truth: Profiles, budget: Floats, prior: RatePrior, noise: NoiseCurve
    ) -> _PublicFacts:
        owners = _at_mean_rate(truth, prior)
        worth = owners.value(owners.privacy_budget)
        weight = worth / worth.sum(axis=1, keepdims=True)
        everything = optimal_error(owners.privacy_budget, owners.data_size, noise)[1]
        return cls(owners, budget, weight, everything / noise.radius**2)

    def take(self, rows: Any) -> _PublicFacts:
        columns = (self.budget, self.weight, self.everything)
        return _PublicFacts(self.owners.take(rows), *(column[rows] for column in columns))

    def priced(self, rate: Floats, price: Floats, slope: float, prior: RatePrior) -> _PricedMarket:
        """The markets at some rates (K, n), with prices (K,) for mean rates and their slope."""
        relative = slope / prior.mean * self.weight
        growth = np.exp((relative * (rate - prior.mean)).sum(axis=1))
        virtual = rate + prior.rent(rate, relative)
        family, _, *rest = self.owners.types
        return _PricedMarket(Profiles(family, virtual, *rest), price * growth)


def _chosen_price(
    public: _PublicFacts, prior: RatePrior, noise: NoiseCurve, slope: float, seed: int
) -> Floats:
    """(K,) prices at which purchases cost the budget, on average over rates drawn anew.

    The bound is concave in the price, and its derivative is what purchases cost less the budget,
    each weighted by mu(r) / mu. So halving a range finds the highest bound.
    """
    markets = len(public.budget)
    rows = np.tile(np.arange(markets), DRAWS)
    many, rates = public.take(rows), _spread_rates(prior, public.owners.shape, seed)
    low, high = (np.full(markets, end) for end in RANGE)
    cheap = np.ones(markets, bool)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        market = many.priced(
            rates, (np.exp(middle) * public.everything / public.budget)[rows], slope, prior
        )
        loss = np.concatenate(
            [_searched(market, part, noise, False)[0] for part in _parts(len(rows))]
        )
        excess = market.owners.value(loss).sum(axis=1) - many.budget
        dear = (market.price * excess).reshape(DRAWS, markets).sum(axis=0) > 0
        cheap &= ~dear
        low, high = np.where(dear, middle, low), np.where(dear, high, middle)
    price = np.exp(0.5 * (low + high)) * public.everything / public.budget
    return np.where(cheap, 0.0, price)  # the budget pays for everything


def _best_slope(public: _PublicFacts, prior: RatePrior, noise: NoiseCurve, seed: int) -> float:
    """a, with the highest mean bound on rates drawn anew in some of the markets."""
    some = public.take(slice(0, SLOPE_CHOSEN_ON))
    rows = np.tile(np.arange(len(some.budget)), DRAWS)
    many = some.take(rows)
    rates = _spread_rates(prior, some.owners.shape, seed + 1)
    best, best_floor = 0.0, -np.inf
    for slope in (0.0, *SLOPES):
        price = _chosen_price(some, prior, noise, slope, seed)
        market = many.priced(rates, price[rows], slope, prior)
        value = _searched(market, slice(None), noise, False)[1]
        floor = float((value - market.price * many.budget).mean())
        if floor <= best_floor:
            break
        best, best_floor = slope, floor
    return best


def _spread_rates(prior: RatePrior, shape: tuple[int, int], seed: int) -> Floats:
    """(DRAWS K, n) rates for K markets, drawn so that those of one owner cover the prior evenly:
    one in every part of equal chance."""
    rng = np.random.default_rng([seed, 9])
    strata = rng.permuted(np.tile(np.arange(DRAWS), (*shape, 1)), axis=2)
    chance = (strata + rng.random(strata.shape)) / DRAWS
    return prior.quantile(chance.transpose(2, 0, 1).reshape(-1, shape[1]))


def _parts(count: int) -> list[slice]:
    return [slice(first, first + AT_ONCE) for first in range(0, count, AT_ONCE)]


def _searched(
    market: _PricedMarket, rows: slice, noise: NoiseCurve, thorough: bool = True
) -> tuple[Floats, Floats]:
    return penalised_purchase(market.owners.take(rows), market.price[rows], noise, thorough)
