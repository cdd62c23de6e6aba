"""Every auction once more: one market at a time, written from its definition, slow and obvious."""

from __future__ import annotations

import numpy as np


def all_in(values, budgets, sizes, money, amount=None):
    amount = sizes * budgets if amount is None else amount
    unit = values / amount
    winners, total = [], 0.0
    for i in sorted(range(len(values)), key=lambda i: (unit[i], i)):
        if unit[i] * (total + amount[i]) <= money:
            winners.append(i)
            total += amount[i]
    loss, payment = np.zeros(len(values)), np.zeros(len(values))
    for i in winners:
        loss[i], payment[i] = budgets[i], money * amount[i] / total
    return loss, payment


def all_in_critical(values, budgets, sizes, money, amount=None):
    """docs/theory.md, section 2, to the letter."""
    loss, payment = all_in(values, budgets, sizes, money, amount)
    amount = sizes * budgets if amount is None else amount
    unit = values / amount
    for i in np.flatnonzero(loss):
        total, best = 0.0, 0.0
        for j in sorted((j for j in range(len(values)) if j != i), key=lambda j: (unit[j], j)):
            best = max(best, min(unit[j], money / (total + amount[i])))
            if unit[j] * (total + amount[j]) <= money:
                total += amount[j]
        payment[i] = amount[i] * max(best, money / (total + amount[i]))
    return loss, payment


def proportional_share(values, budgets, sizes, money, amount=None):
    amount = sizes * budgets if amount is None else amount
    unit = values / amount
    order = sorted(range(len(values)), key=lambda i: (unit[i], i))
    winners, total, following = [], 0.0, np.inf
    for i in order:
        if unit[i] * (total + amount[i]) > money:
            following = unit[i]
            break
        winners.append(i)
        total += amount[i]
    loss, payment = np.zeros(len(values)), np.zeros(len(values))
    for i in winners:
        loss[i], payment[i] = budgets[i], amount[i] * min(money / total, following)
    return loss, payment


def clock(values, budgets, sizes, money, amount=None, cap=0.7):
    """From exit to exit: who is left at a price range, and the highest price there that fits."""
    amount = sizes * budgets if amount is None else amount
    most, unit = cap * money, values / amount
    left = [i for i in range(len(values)) if values[i] <= most]

    def needed(price):
        return sum(min(price * amount[i], most) for i in left)

    above = 4 * most / min(amount) + 1.0  # everybody is at the cap there
    loss, payment = np.zeros(len(values)), np.zeros(len(values))
    while left:
        first_to_leave = max(left, key=lambda i: (unit[i], i))
        if needed(unit[first_to_leave]) <= money:
            price, too_high = unit[first_to_leave], above
            if needed(too_high) <= money:
                price = too_high
            for _ in range(200):
                middle = (price + too_high) / 2
                price, too_high = (middle, too_high) if needed(middle) <= money else (price, middle)
            for i in left:
                loss[i], payment[i] = budgets[i], min(price * amount[i], most)
            break
        left.remove(first_to_leave)
        above = unit[first_to_leave]
    return loss, payment


def fair_query(values, budgets, sizes, money):
    n = len(values)
    order = sorted(range(n), key=lambda i: (values[i], i))
    loss, payment = np.zeros(n), np.zeros(n)
    for k in range(n - 1, 0, -1):
        first, share = order[:k], max(budgets) / (n - k)
        if all(values[i] <= money / k and budgets[i] >= share for i in first):
            for i in first:
                loss[i], payment[i] = share, min(money / k, values[order[k]])
            break
    return loss, payment


def pay_as_bid(values, budgets, sizes, money):
    loss, payment, spent = np.zeros(len(values)), np.zeros(len(values)), 0.0
    unit = values / (sizes * budgets)
    for i in sorted(range(len(values)), key=lambda i: (unit[i], i)):
        if spent + values[i] <= money * (1 + 1e-12):
            loss[i], payment[i] = budgets[i], values[i]
            spent += values[i]
    return loss, payment


REFERENCES = {
    "all-in": all_in,
    "all-in-critical": all_in_critical,
    "proportional-share": proportional_share,
    "clock": clock,
    "fair-query": fair_query,
    "pay-as-bid": pay_as_bid,
}
