"""The mechanisms of privacy markets once more: one market at a time, from their definitions.

Every function takes the values (n, M), privacy budgets, sizes (n,) and the money of one market, and
gives privacy losses and payments (n,).
"""

from __future__ import annotations

import itertools

import numpy as np

import flmarket_sim as fm


def vcg_k(values, budgets, sizes, money):
    n = len(values)
    unit = values[:, -1] / budgets
    order = sorted(range(n), key=lambda i: (unit[i], i))
    loss, payment = np.zeros(n), np.zeros(n)
    for k in range(n - 1, 0, -1):
        price = unit[order[k]]
        if k * price / (n - k) <= money:
            for i in order[:k]:
                loss[i] = min(1 / (n - k), budgets[i])
                payment[i] = price * loss[i]
            break
    return loss, payment


def csra(values, budgets, sizes, money, sells="whole"):
    n = len(values)
    quality = (budgets / budgets.sum()) * (sizes / sizes.sum())
    bid = values[:, -1]
    order = sorted(range(n), key=lambda i: (bid[i] / quality[i], i))
    loss, payment = np.zeros(n), np.zeros(n)
    for k in range(n - 1, 0, -1):
        price = bid[order[k]] / quality[order[k]]
        if price * sum(quality[i] for i in order[:k]) <= money:
            for i in order[:k]:
                loss[i] = budgets[i] if sells == "whole" else min(1 / (n - k), budgets[i])
                payment[i] = price * quality[i]
            break
    return loss, payment


def mfg_pricing(values, budgets, sizes, money):
    return budgets, money * budgets / budgets.sum()


def stackelberg(values, budgets, sizes, money):
    """The price by halving, and every answer by trying all levels, the lowest first.

    The price often ends where somebody is indifferent, and then she sells what she does just below
    it.
    """
    n, levels = values.shape

    def answer(price):
        loss = np.zeros(n)
        for i in range(n):
            best = 0.0
            for m in range(levels):
                e = budgets[i] * (m + 1) / levels
                gain = price * sizes[i] * e - values[i, m]
                if gain > best:
                    best, loss[i] = gain, e
        return loss

    low, high = 0.0, 2 * (values.max() + money) / (sizes * budgets).min() + 1
    for _ in range(100):
        middle = (low + high) / 2
        fits = (middle * sizes * answer(middle)).sum() <= money
        low, high = (middle, high) if fits else (low, middle)
    loss = answer(low * (1 - 1e-9))
    return loss, low * sizes * loss


def contract_menu(values, budgets, sizes, money, types=(0.75, 1.0, 1.25, 1.5)):
    """Linear h(e) = 2 e, and tables that are read as the next higher level."""
    count = len(types)
    loss = [2.0 * (count - k) / count for k in range(count)]
    reward = [0.0] * count
    reward[-1] = types[-1] * 2 * loss[-1]
    for k in range(count - 2, -1, -1):
        reward[k] = reward[k + 1] + types[k] * (2 * loss[k] - 2 * loss[k + 1])
    scale = min(1.0, money / (sizes.sum() * np.mean(reward)))
    offers = [(scale * e, scale * r) for e, r in zip(loss, reward, strict=True)]
    return _served(offers, values, budgets, sizes, money)


def _served(offers, values, budgets, sizes, money):
    n, levels = values.shape
    sold, paid, left = np.zeros(n), np.zeros(n), money
    for i in range(n):
        best = -1.0
        for e, reward in offers:
            price = sizes[i] * reward
            if 0 < e <= budgets[i] and price <= left:
                cost = values[i, int(np.ceil(e / budgets[i] * levels - 1e-12)) - 1]
                if price - cost >= 0 and price - cost > best:
                    best, sold[i], paid[i] = price - cost, e, price
        left -= paid[i]
    return sold, paid


def fmore(values, budgets, sizes, money, worth=4.0, winners=5, payment="first"):
    n = len(values)
    quality, ask = worth * sizes * budgets, values[:, -1]
    score = quality - ask
    order = sorted(range(n), key=lambda i: (-score[i], i))
    best_loser = max(score[order[winners]], 0.0) if n > winners else 0.0
    loss, paid = np.zeros(n), np.zeros(n)
    for i in order[:winners]:
        price = ask[i] if payment == "first" else quality[i] - best_loser
        if score[i] < 0 or paid.sum() + price > money:
            break
        loss[i], paid[i] = budgets[i], price
    return loss, paid


def shapley_pay(values, budgets, sizes, money):
    value = shapley_values(budgets, sizes, itertools.permutations(range(len(budgets))))
    positive = np.maximum(value, 0)
    share = positive / positive.sum() if positive.sum() > 0 else np.full(len(value), 1 / len(value))
    return budgets, money * share


def shapley_values(budgets, sizes, orders):
    """Means over the orders of what each owner takes from the error of those before her."""
    n = len(budgets)

    def error(coalition):
        sold = np.array([[budgets[i] if i in coalition else 0.0 for i in range(n)]])
        weights = fm.aggregation.create("opt-aggr").weights(sold, sizes[None])
        return fm.aggregation.error_bound(weights, sold, sizes[None])[0]

    known = {}
    nobody = max(error({i}) for i in range(n))
    added = []
    for order in orders:
        value, before = np.zeros(n), nobody
        for place, i in enumerate(order):
            members = frozenset(order[: place + 1])
            if members not in known:
                known[members] = error(members)
            value[i] = before - known[members]
            before = known[members]
        added.append(value)
    return np.mean(added, axis=0)


REFERENCES = {
    "vcg-k": vcg_k,
    "csra": csra,
    "mfg-pricing": mfg_pricing,
    "stackelberg": stackelberg,
    "contract-menu": contract_menu,
    "fmore": fmore,
    "shapley-pay": shapley_pay,
}
