"""The former search of first-best, which `first_best` measures beside the present one."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.aggregation.error_bound import error_bound
from flmarket_sim.aggregation.opt_aggr import OptAggr
from flmarket_sim.auctions.auction import Floats
from flmarket_sim.auctions.greedy import admit
from flmarket_sim.owners import valuation
from flmarket_sim.owners.bids import Profiles


def first_best(
    truth: Profiles, budget: ArrayLike, clip: float = 1.0, steps: int = 250, starts: int = 6
) -> Floats:
    """(K,) the least errors found, with `starts` starts of `steps` steps each."""
    money = np.asarray(budget, np.float64)
    full = truth.value(truth.privacy_budget)
    best_loss = np.where(full.sum(1, keepdims=True) <= money[:, None], truth.privacy_budget, 0.0)
    best_error = _bound(best_loss, truth, clip)
    scarce = np.flatnonzero(full.sum(1) > money)
    if len(scarce):
        part, cash, price = truth.take(scarce), money[scarce], full[scarce]
        for loss in _whole_sales(part, cash, price):
            _keep(best_loss, best_error, scarce, loss, _bound(loss, part, clip))
        for logits in _starts(part, price, best_loss[scarce], starts):
            loss = _descend(part, cash, price, logits, steps, clip)
            _keep(best_loss, best_error, scarce, loss, _bound(loss, part, clip))
        step = part.family == valuation.STEP
        if step.any() and not step.all():
            for whole in _step_sets(
                step, price / (part.data_size * part.privacy_budget), price, cash
            ):
                left = cash - np.where(whole, price, 0.0).sum(axis=1)
                rest = _descend(
                    part, left, price, np.where(step, -60.0, np.log(price)), steps, clip
                )
                loss = np.where(whole, part.privacy_budget, np.where(step, 0.0, rest))
                _keep(best_loss, best_error, scarce, loss, _bound(loss, part, clip))
    return best_error


def _bound(loss: Floats, truth: Profiles, clip: float) -> Floats:
    return error_bound(OptAggr().weights(loss, truth.data_size, clip), loss, truth.data_size, clip)


def _keep(
    best_loss: Floats, best_error: Floats, rows: np.ndarray, loss: Floats, error: Floats
) -> None:
    better = error < best_error[rows]
    best_loss[rows[better]] = loss[better]
    best_error[rows[better]] = error[better]


def _whole_sales(truth: Profiles, cash: Floats, price: Floats) -> list[Floats]:
    """Whole privacy budgets, bought greedily in several orders: step owners make no other sales."""
    eb, size = truth.privacy_budget, truth.data_size
    purchases = []
    for score in (price / (eb * size), price, price / eb**2, -size):
        order = np.argsort(score, axis=1, kind="stable")
        value = np.take_along_axis(price, order, 1)
        bought = np.zeros(price.shape, bool)
        np.put_along_axis(
            bought, order, admit(value, np.broadcast_to(cash[:, None], value.shape)), 1
        )
        purchases.append(np.where(bought, eb, 0.0))
    return purchases


def _step_sets(
    step: NDArray[np.bool_], unit: Floats, price: Floats, cash: Floats
) -> list[NDArray[np.bool_]]:
    """Sets of step owners to buy whole before the rest of the money is spread: the cheapest 0, 1,
    2, ... that can be paid, and each one alone."""
    order = np.argsort(np.where(step, unit, np.inf), axis=1, kind="stable")
    value = np.take_along_axis(np.where(step, price, np.inf), order, 1)
    affordable = np.cumsum(value, axis=1) <= cash[:, None]
    sets = []
    for count in range(int(step.sum(axis=1).max()) + 1):
        chosen = np.zeros(step.shape, bool)
        np.put_along_axis(chosen, order, affordable & (np.arange(step.shape[1]) < count), 1)
        sets.append(chosen)
    if step.shape[1] > 1:  # and each of them alone
        sets += [
            step & (price <= cash[:, None]) & (np.arange(step.shape[1]) == i)
            for i in range(step.shape[1])
        ]
    return sets


def _starts(truth: Profiles, price: Floats, known: Floats, starts: int) -> list[Floats]:
    """Logits of the shares of the money that each owner gets at first."""
    rng = np.random.default_rng(0)
    fixed = [
        np.log(price),
        np.zeros_like(price),
        np.log(truth.data_size),
        2.0 * np.log(truth.privacy_budget) - np.log(price / truth.data_size),
        np.where(known > 0, np.log(price), np.log(price) - 2.0),
    ]
    while len(fixed) < starts:
        fixed.append(np.log(price) + rng.normal(0.0, 1.5, price.shape))
    return fixed


def _descend(
    truth: Profiles, cash: Floats, price: Floats, logits: Floats, steps: int, clip: float
) -> Floats:
    """Adam on the logits of the shares of money, along the envelope gradient of log ERR."""
    rule, size, codes, rate = OptAggr(), truth.data_size, truth.family, truth.rate
    z = logits - logits.mean(axis=1, keepdims=True)
    mean, square = np.zeros_like(z), np.zeros_like(z)
    best = np.zeros_like(z)
    best_error = np.full(len(z), np.inf)
    for t in range(1, steps + 1):
        share = np.exp(z - z.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        spend = np.minimum(share * cash[:, None], price)
        loss = valuation.loss_for_money(codes, rate, size, truth.privacy_budget, spend)
        weights = rule.weights(loss, size, clip)
        error = error_bound(weights, loss, size, clip)
        better = error < best_error
        best[better], best_error[better] = loss[better], error[better]
        inside = (loss > 0) & (spend < price)
        safe = np.where(loss > 0, loss, 1.0)
        slope = np.maximum(valuation.marginal_value(codes, rate, size, safe), 1e-12)
        per_money = np.where(inside, -16.0 * clip**2 * weights**2 / safe**3 / slope, 0.0)
        scaled = per_money * (cash / np.where(np.isfinite(error), error, 1.0))[:, None]
        gradient = share * (scaled - (share * scaled).sum(axis=1, keepdims=True))
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.99 * square + 0.01 * gradient**2
        rate_now = 0.3 * (1.0 - t / (steps + 1))
        z = z - rate_now * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.99**t)) + 1e-9)
    return np.asarray(best)
