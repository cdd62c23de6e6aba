"""The probe once more, slow and obvious: one market, one owner, every report of a coarse grid, one
call a report."""

from __future__ import annotations

from itertools import product

import numpy as np

import flmarket_sim as fm
from tests.auctions.references import REFERENCES

FACTORS = (0.0, *np.geomspace(0.1, 10.0, 13))
SHARES = np.linspace(0.1, 1.0, 13)


def true_value(truth, k, i, loss, size):
    family, rate = fm.owners.valuation.FAMILIES[truth.family[k, i]], truth.rate[k, i]
    if family == "step":
        return rate * truth.data_size[k, i] * truth.privacy_budget[k, i] * (loss > 0)
    unit = {
        "linear": 2 * loss,
        "quadratic": loss**2,
        "sqrt": 2 * loss**0.5,
        "exponential": np.exp(loss) - 1,
    }[family]
    return rate * size * unit


def best_of_all(name, truth, money, k, i):
    """Highest utility of owner i over all (full value, privacy budget, data size) of the grid, on
    the slow auction.

    The classical auctions read nothing else of a report.
    """
    n = truth.shape[1]
    values = np.array(
        [
            true_value(truth, k, j, truth.privacy_budget[k, j], truth.data_size[k, j])
            for j in range(n)
        ]
    )
    budgets, sizes = truth.privacy_budget[k].copy(), truth.data_size[k].copy()

    def utility(value, budget, size):
        told = values.copy(), budgets.copy(), sizes.copy()
        told[0][i], told[1][i], told[2][i] = value, budget, size
        loss, payment = REFERENCES[name](*told, money[k])
        return payment[i] - true_value(truth, k, i, loss[i], size)

    honest = utility(values[i], budgets[i], sizes[i])
    best = honest
    for factor, share, size in product(FACTORS, SHARES, np.arange(1, sizes[i] + 1)):
        best = max(best, utility(factor * values[i], share * budgets[i], size))
    return honest, best


def best_two_step(auction, truth, money, k, i, levels):
    """Highest utility of owner i over all tables with two heights and a jump at any level, at
    several budgets: any auction."""
    bids = truth.take(slice(k, k + 1)).bids(levels)
    full = bids.values[0, i, -1]
    tables, shares = [], []
    heights = (0.0, 0.3, 0.7, 1.0, 1.5, 5.0)
    for low, high, jump, share in product(heights, heights, range(levels + 1), (0.5, 0.75, 1.0)):
        if low <= high:
            tables.append(np.where(np.arange(levels) < jump, low * full, high * full))
            shares.append(share)
    told = bids.take(np.zeros(len(tables), int))  # one market a table
    values, budget = told.values.copy(), told.privacy_budget.copy()
    values[:, i] = tables
    budget[:, i] *= shares
    reports = fm.BidBatch(values, budget, told.data_size)
    outcome = auction.decide(reports, np.repeat(money[k], len(tables)), np.random.default_rng(0))
    size = truth.data_size[k, i]
    utilities = [
        payment - true_value(truth, k, i, loss, size)
        for loss, payment in zip(outcome.privacy_loss[:, i], outcome.payment[:, i], strict=True)
    ]
    return max(utilities)
