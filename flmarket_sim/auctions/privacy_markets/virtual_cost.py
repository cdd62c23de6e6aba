"""The Bayesian optimal purchase by virtual costs, as menus that are served in turn."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from flmarket_sim.aggregation.market_error import MarketError, coordinate_error
from flmarket_sim.aggregation.noise_curve import NoiseCurve
from flmarket_sim.aggregation.opt_aggr import part_of_error, solve_with_duals
from flmarket_sim.aggregation.rule import data_shares
from flmarket_sim.auctions.auction import Floats
from flmarket_sim.auctions.privacy_markets.menus_in_turn import SellsFromMenus
from flmarket_sim.errors import InputError
from flmarket_sim.owners.family_table import family_codes
from flmarket_sim.owners.rate_prior import UniformRates
from flmarket_sim.owners.valuation import unit_value

HALVINGS, FEW_HALVINGS = 50, 16  # of the range of prices of money, at last and on the way there
STEPS = 12  # from purchases to their exact weights and back
NOTHING = 1e-300


class VirtualCost(SellsFromMenus):
    """Everybody gets the menu that minimises ERR(e) + mu sum_i psi(t_i) h_i(e_i) at her own rate.

    Fallah, Makhdoumi, Malekian and Ozdaglar, "Optimal and Differentially Private Data Acquisition:
    Central and Local Mechanisms" (2022; the local mechanism), and Anjarlekar, Etesami and Srikant,
    "Striking a Balance: An Optimal Mechanism Design for Heterogenous Differentially Private Data
    Acquisition for Logistic Regression" (2023), after Myerson (1981). Rates t are drawn from a
    prior, uniform from `low` to `high`; psi(t) = t + F(t) / f(t) is the virtual rate and h_i the
    cost of a loss at rate 1 (`family`). An owner of rate t is paid

        t h_i(e_i(t)) + integral from t to the top of h_i(e_i(z)) dz

    and the price of money mu makes the buyer spend her budget on average. There the loss of one
    owner depends on the rates of all, and a budget that holds on average is not enough here. The
    playable form: u and v, the two numbers of exact OptAggr (docs/theory.md, section 1), are those
    of the mean purchase over the prior, and mu spends the budget on average. For given u, v and mu
    an owner's own part of the problem is

        e_i(t) = argmin over e <= eb of [ part_i(e; u, v) + mu psi(t) h_i(e) ]

    so what she sells and is paid is a choice from a menu of `levels` losses up to `largest`. A loss
    is paid what an owner gets who has no larger privacy budget and sells all of it. Privacy budgets
    are thought to be uniform from `smallest` to `largest`. Menus are served in the order of the
    bids while the money lasts. They depend on certified sizes, the budget and the prior only, and
    owners choose by their whole reports: so the sale is truthful and individually rational for
    every valuation. The publications claim this for owners of one known cost function, whose rates
    alone are secret.
    """

    name = "virtual-cost"
    formula = (
        "min ERR(e) + mu sum psi(t_i) h_i(e_i); pay t h_i(e_i(t)) + integral of h_i(e_i(z)) dz"
    )
    reference = (
        "Fallah, Makhdoumi, Malekian and Ozdaglar (2022); Anjarlekar, Etesami and Srikant (2023)"
    )
    guarantees = {"truthful": "any", "individually_rational": "any", "budget_feasible": "any"}
    certified = ("data_size",)

    def __init__(
        self,
        low: Annotated[float, Field(gt=0, le=1e100)] = 0.5,
        high: Annotated[float, Field(gt=0, le=1e100)] = 1.5,
        family: Literal["linear", "quadratic", "sqrt", "exponential"] = "linear",
        smallest: Annotated[float, Field(gt=0, le=100)] = 0.5,
        largest: Annotated[float, Field(gt=0, le=100)] = 2.0,
        levels: Annotated[int, Field(ge=1, le=200)] = 16,
    ) -> None:
        if smallest > largest:
            raise InputError(
                f"virtual-cost: privacy budgets need smallest <= largest, got {smallest:g} and "
                f"{largest:g}"
            )
        self.prior = UniformRates(low, high)
        self.family, self.levels = family, levels
        self.smallest, self.largest = smallest, largest
        self.error = coordinate_error()

    def in_market(self, error: MarketError) -> Self:
        """The same auction in a market that counts this error."""
        other = copy.copy(self)
        other.error = error
        return other

    def menus(self, data_size: Floats, budget: Floats) -> tuple[Floats, Floats]:
        """Losses (L,) and payments (K, n, L) for them, infinite where a loss is not offered.

        Searches try many reports in one market, so markets with the same facts share their menus.
        """
        public = np.column_stack([data_size, budget])
        different, which = np.unique(public, axis=0, return_inverse=True)
        loss, payment = self._menus(different[:, :-1], different[:, -1])
        return loss, payment[which.ravel()]

    def _menus(self, data_size: Floats, budget: Floats) -> tuple[Floats, Floats]:
        loss = self.largest * np.arange(1, self.levels + 1) / self.levels
        worth = unit_value(np.broadcast_to(family_codes(self.family), loss.shape), loss)
        everything = data_size.sum(axis=1) * worth[-1]  # at rate 1
        share = data_shares(data_size)
        steps, virtual = self._last_buyers(share, worth / worth[-1], loss, budget / everything)
        reward = steps.sums(self._rate_and_chance(virtual)[0] * steps.width)
        paid = reward * (share * everything[:, None])[..., None]
        return loss, np.where(virtual >= self.prior.low, paid, np.inf)

    def _last_buyers(
        self, share: Floats, worth: Floats, loss: Floats, money: Floats
    ) -> tuple[_Steps, Floats]:
        """The steps of menus, and the highest virtual rates (K, n, L) that should take them.

        Half of the way from a mean purchase to the next is gone each time, since owners who are
        alike would otherwise all enter and leave at once.
        """
        noise = NoiseCurve.of(self.error, self.largest)
        precision = np.append(0.0, noise.radius**2 / noise.variance_at(loss))
        inverse = np.full(share.shape, precision[-1])
        chance = self._chances_of_budgets(loss)
        table = np.broadcast_to(precision, (*share.shape, len(precision)))
        for step in range(STEPS):
            _, u, v = solve_with_duals(inverse, share)
            part = part_of_error(table, u[:, None, None], v[:, None, None], share[..., None])
            steps = _Steps.of(np.append(0.0, worth), part, chance)
            halvings = HALVINGS if step == STEPS - 1 else FEW_HALVINGS
            virtual = self._within_budget(steps, share, money, halvings)
            bought = self._rate_and_chance(virtual)[1] * steps.reached * steps.rise(precision)
            mean = np.asarray(bought.sum(axis=2))
            inverse = np.where((mean > 0).any(axis=1, keepdims=True), (inverse + mean) / 2, inverse)
        return steps, virtual

    def _chances_of_budgets(self, loss: Floats) -> Floats:
        """(L,) the chance that a loss is the largest on the menu that a privacy budget covers."""
        if self.smallest == self.largest:
            return np.asarray(loss == loss[-1], np.float64)
        end = np.append(loss[1:], np.inf)
        covered = np.minimum(end, self.largest) - np.maximum(loss, self.smallest)
        return np.asarray(np.maximum(covered, 0.0) / (self.largest - self.smallest))

    def _within_budget(self, steps: _Steps, share: Floats, money: Floats, halvings: int) -> Floats:
        """(K, n, L) the last virtual rates at the lowest price of money at which menus cost no more
        than `money` (K,) on average."""
        gain = steps.gain / share[..., None]
        useful = np.isfinite(gain) & (gain > NOTHING)
        gain = np.where(useful, gain, 0.0)
        least = np.where(useful, gain, np.inf).min(axis=(1, 2))
        top = self.prior.high + float(self.prior.rent(np.array(self.prior.high), np.zeros(())))
        low = np.log(least) - np.log(top) - 1.0  # every rate takes every step
        high = np.log(gain.max(axis=(1, 2))) - np.log(self.prior.low) + 1.0  # no rate takes any
        paid = share[..., None] * steps.reached * steps.width

        def dear(log_price: Floats) -> NDArray[np.bool_]:
            rate, chance = self._rate_and_chance(gain * np.exp(-log_price)[:, None, None])
            return np.asarray((paid * chance * rate).sum(axis=(1, 2)) > money)

        high = np.where(dear(low), high, low)
        for _ in range(halvings):
            middle = 0.5 * (low + high)
            above = dear(middle)
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return np.asarray(gain * np.exp(-high)[:, None, None])

    def _rate_and_chance(self, virtual: Floats) -> tuple[Floats, Floats]:
        """The highest rates of the prior up to these virtual rates, and the chances of rates up to
        them. The virtual rate of a uniform prior is 2 t - low, which is low for the lowest."""
        low, high = self.prior.low, self.prior.high
        rate = np.minimum(0.5 * (virtual + low), high)
        if low == high:
            return rate, np.where(virtual >= low, 1.0, 0.0)
        return rate, np.maximum(rate - low, 0.0) / (high - low)


@dataclass(frozen=True)
class _Steps:
    """The way to each loss of a menu, for owners whose privacy budgets end there.

    It goes along the lower convex hull of the parts of the error up to this loss, over the worths
    of the losses. All are (K, n, L):

    before   the place of the corner before, from 0 ("nothing") on
    gain     what the last step saves of the error, for a unit of worth
    width    the worth of the last step
    reached  the chance of a privacy budget whose way has this step
    """

    before: NDArray[np.int64]
    gain: Floats
    width: Floats
    reached: Floats

    @classmethod
    def of(cls, worth: Floats, part: Floats, chance: Floats) -> _Steps:
        shape = (*part.shape[:2], len(chance))
        before, gain = np.zeros(shape, np.int64), np.zeros(shape)
        reached = np.broadcast_to(chance, shape).copy()
        for end in range(1, len(worth)):
            slope = (part[..., :end] - part[..., end, None]) / (worth[end] - worth[:end])
            before[..., end - 1] = slope.argmin(axis=2)
            gain[..., end - 1] = slope.min(axis=2)
        padded = np.concatenate([np.zeros((*shape[:2], 1)), reached], axis=2)
        for end in range(len(worth) - 1, 0, -1):
            at = before[..., end - 1, None]
            so_far = np.take_along_axis(padded, at, axis=2) + padded[..., end, None]
            np.put_along_axis(padded, at, so_far, axis=2)
        return cls(before, gain, worth[1:] - worth[before], padded[..., 1:])

    def rise(self, quantity: Floats) -> Floats:
        """(K, n, L) by how much the last step adds to a quantity (L + 1,) of losses from 0 on."""
        return np.asarray(quantity[1:] - quantity[self.before])

    def sums(self, step: Floats) -> Floats:
        """(K, n, L) the sums of something (K, n, L) over all steps on the way."""
        total = np.concatenate([np.zeros((*step.shape[:2], 1)), step], axis=2)
        for end in range(1, total.shape[2]):
            before = np.take_along_axis(total, self.before[..., end - 1, None], axis=2)
            total[..., end] += before[..., 0]
        return np.asarray(total[..., 1:])
