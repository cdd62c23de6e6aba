"""Second-best: an error that no truthful mechanism can beat on average, a yardstick for mechanisms.

docs/second-best.md derives it. Rates are secret, drawn from a prior; families, privacy budgets,
data sizes and the buyer's budget B are public. For any price of money mu >= 0,

    E[ERR of any truthful mechanism] >= E[ min over e of { ERR(e) + mu sum_i psi_i c_i(e_i) } ] - mu B

with c_i the cost at rate 1 and psi_i = r_i + F(r_i) / f(r_i) the virtual rate. A mechanism that is
truthful in dominant strategies and keeps the budget every time also obeys the bound with a price
that depends on the rates, mu(r) = mu exp(a (z(r) - 1)), z the mean rate weighted by cost, and

    psi_i mu -> mu(r) r_i + integral from low to r_i of mu(s, r_-i) f(s) ds / f(r_i).

The price is a function of public facts, mu B / ERR(everything) = exp(polynomial), and its few
coefficients are fitted on rates that are not those of the markets: a price that saw the rates would
make the floor too high. The inner minimum is a search (`penalised_purchase`), which may be too
high; `lower_bound` is below it for certain (`proved_bound`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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

FITTED_ON = 160  # markets that the coefficients are fitted on, at most
FIRST_PRICE = (-1.0, -1.0, -0.3, 0.0)  # coefficients to begin with
STEPS = (0.6, 0.3, 0.15)  # of the fit
SLOPES = (-1.0, -2.0, -3.0)  # a, the change of the price with the rates
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
    coefficients, slope = _fitted(public, prior, noise, holds, seed)
    market = public.priced(truth.rate, coefficients, slope, prior)
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
    return np.asarray(factor * _at_mean_rate(truth, prior).total_value())


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
    """What a price may depend on: owners without their rates, budgets, and features (K, 4)."""

    owners: Profiles
    budget: Floats
    weight: Floats
    everything: Floats
    features: Floats

    @classmethod
    def of(
        cls, truth: Profiles, budget: Floats, prior: RatePrior, noise: NoiseCurve
    ) -> _PublicFacts:
        owners = _at_mean_rate(truth, prior)
        worth = owners.value(owners.privacy_budget)
        weight = worth / worth.sum(axis=1, keepdims=True)
        wealth = np.log(budget / worth.sum(axis=1))
        everything = optimal_error(owners.privacy_budget, owners.data_size, noise)[1]
        largest = np.log(weight.max(axis=1))
        features = np.stack([np.ones_like(wealth), wealth, wealth**2, largest], axis=1)
        return cls(owners, budget, weight, everything / noise.radius**2, features)

    def take(self, rows: slice) -> _PublicFacts:
        columns = (self.budget, self.weight, self.everything, self.features)
        return _PublicFacts(self.owners.take(rows), *(column[rows] for column in columns))

    def priced(
        self, rate: Floats, coefficients: Floats, slope: float, prior: RatePrior
    ) -> _PricedMarket:
        """The markets at some rates (K, n), with the price that public facts and rates give."""
        first = np.exp(self.features @ coefficients) * self.everything / self.budget
        relative = slope / prior.mean * self.weight
        growth = np.exp((relative * (rate - prior.mean)).sum(axis=1))
        virtual = rate + prior.rent(rate, relative)
        family, _, *rest = self.owners.types
        return _PricedMarket(Profiles(family, virtual, *rest), first * growth)


def _fitted(
    public: _PublicFacts, prior: RatePrior, noise: NoiseCurve, holds: BudgetHolds, seed: int
) -> tuple[Floats, float]:
    """The coefficients of the price and its slope with the highest floor on rates drawn anew."""
    some = public.take(slice(0, FITTED_ON))
    rates = prior.draw(np.random.default_rng([seed, 9]), some.owners.shape)

    def floor(coefficients: Floats, slope: float) -> float:
        market = some.priced(rates, coefficients, slope, prior)
        _, value = penalised_purchase(market.owners, market.price, noise, thorough=False)
        return float((value - market.price * some.budget).mean())

    spread = some.features.std(axis=0) > 1e-9
    moving = [0, *np.flatnonzero(spread)]
    best, slope = np.array(FIRST_PRICE), 0.0
    value = floor(best, slope)
    for step in STEPS:
        for place in moving:
            for change in (-step, step):
                tried = best.copy()
                tried[place] += change
                if (found := floor(tried, slope)) > value:
                    best, value = tried, found
                    break
        if holds == "every time" and step == STEPS[0]:
            for other in SLOPES:
                if (found := floor(best, other)) <= value:
                    break
                slope, value = other, found
    return best, slope


def _parts(count: int) -> list[slice]:
    return [slice(first, first + AT_ONCE) for first in range(0, count, AT_ONCE)]


def _searched(market: _PricedMarket, rows: slice, noise: NoiseCurve) -> tuple[Floats, Floats]:
    return penalised_purchase(market.owners.take(rows), market.price[rows], noise)
