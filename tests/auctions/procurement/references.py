"""Procurement mechanisms once more: one market at a time, from their definitions, slow and obvious.

`asks` and `worth` are lists: what owners ask for their whole sales, and what these count as.
"""

from __future__ import annotations

import itertools
import math


def fractional_optimum(asks, worth, money):
    """Over owners who ask for at most the money, the last one in part."""
    owners = [(cost, value) for cost, value in zip(asks, worth, strict=True) if cost <= money]
    bought, left = 0.0, money
    for cost, value in sorted(owners, key=lambda owner: owner[0] / owner[1]):
        if cost > left:
            return bought + value * left / cost
        bought, left = bought + value, left - cost
    return bought


def knapsack(asks, worth, money):
    """The best set of whole sales at their costs, by trying all."""
    sets = itertools.product((0, 1), repeat=len(asks))
    return max(
        sum(v * taken for v, taken in zip(worth, chosen, strict=True))
        for chosen in sets
        if sum(c * taken for c, taken in zip(asks, chosen, strict=True)) <= money
    )


def rule_outcome(asks, worth, rule):
    """What a rule (p1, p2, f) buys and spends on average."""
    low, high, chance = rule
    sold = spent = 0.0
    for cost, value in zip(asks, worth, strict=True):
        if cost / value <= low:
            sold += value
            spent += value * (low + chance * (high - low))
        elif cost / value <= high:
            sold += value * chance
            spent += value * chance * high
    return sold, spent


def best_rule(asks, worth, money):
    """(bought, rule): every pair of ratios, each with the largest chance that the money allows."""
    ratios = sorted({0.0, *(cost / value for cost, value in zip(asks, worth, strict=True))})
    best = (0.0, (0.0, 0.0, 0.0))
    for low, high in itertools.combinations_with_replacement(ratios, 2):
        cheap = rule_outcome(asks, worth, (low, high, 0.0))[1]
        dear = rule_outcome(asks, worth, (low, high, 1.0))[1]
        if cheap > money:
            continue
        chance = 0.0 if dear <= cheap else min(1.0, (money - cheap) / (dear - cheap))
        sold = rule_outcome(asks, worth, (low, high, chance))[0]
        if sold > best[0] * (1 + 1e-12):
            best = (sold, (low, high, chance))
    return best


def sell_in_turn(asks, worth, posted, money, order):
    """(payments or None for those who do not sell)"""
    paid = [None] * len(asks)
    for i in order:
        offer = min(posted[i] * worth[i], money)
        if asks[i] <= offer * (1 + 1e-14):
            paid[i] = offer
            money -= offer
    return paid


def random_sample(asks, worth, money, order, coin, shared):
    first, second = order[: len(order) // 2], order[len(order) // 2 :]
    posted, halves = [0.0] * len(asks), {0: first, 1: second}
    for number, owners in halves.items():
        others = halves[1 - number]
        _, (low, high, chance) = best_rule(
            [asks[j] for j in others], [worth[j] for j in others], money / 2
        )
        for i in owners:
            posted[i] = high if coin[i] < chance else low
    if shared:
        return sell_in_turn(asks, worth, posted, money, order)
    one = sell_in_turn(asks, worth, posted, money / 2, first)
    two = sell_in_turn(asks, worth, posted, money / 2, second)
    return [a if a is not None else b for a, b in zip(one, two, strict=True)]


def agn_at(ratio, rate):
    """(fraction, payment for a unit of value)"""
    if ratio > (math.e - 1) * rate:
        return 0.0, 0.0
    fraction = math.log(math.e - ratio / rate)
    return fraction, rate * math.e * fraction - rate * (math.e - 1) + ratio


def agn(asks, worth, money):
    """The largest rate within the money, by halving."""

    def spent(rate):
        return sum(v * agn_at(c / v, rate)[1] for c, v in zip(asks, worth, strict=True))

    low, high = 0.0, 1.0
    while spent(high) <= money:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) <= money else (low, middle)
    sales = [agn_at(c / v, low) for c, v in zip(asks, worth, strict=True)]
    return [fraction for fraction, _ in sales], [
        pay * v for (_, pay), v in zip(sales, worth, strict=True)
    ]


def pruned(asks, worth, money):
    """(S, r, i*): the ratio r of value to cost rises, and owners leave one by one."""
    ratio = [v / c if c > 0 else math.inf for c, v in zip(asks, worth, strict=True)]
    staying = [i for i in range(len(asks)) if asks[i] <= money]
    if not staying:
        return [], math.inf, None
    rate = max(worth[i] for i in staying) / money
    staying = [i for i in staying if ratio[i] >= rate * (1 - 1e-15)]
    while True:
        star = max(staying, key=lambda i: (worth[i], -i))
        needed = sum(worth[i] for i in staying if i != star) / money
        if needed <= rate:
            return staying, rate, star
        leaver = min(staying, key=lambda i: (ratio[i], -i))
        if needed <= ratio[leaver] * (1 + 1e-15):
            return staying, needed, star
        rate = max(rate, ratio[leaver])
        staying.remove(leaver)


def gravin(asks, worth, money, heads=None, uniform=0.0):
    """Payments or None; the deterministic mechanism where there is no coin."""
    paid = [None] * len(asks)
    staying, rate, star = pruned(asks, worth, money)
    if not staying:
        return paid
    groups = [[star], [i for i in staying if i != star]]
    groups.sort(key=lambda group: (-sum(worth[i] for i in group), star in group))
    value = [sum(worth[i] for i in group) for group in groups]
    rest = max(money - value[0] / rate, 0.0) / value[1] if groups[1] else 0.0
    prices = (1 / rate, min(rest, 1 / rate))
    if heads is not None:
        step = uniform / rate
        prices = (
            (1 / rate, max(0.0, rest - step))
            if heads
            else ((1 - uniform) / rate, min(1 / rate, rest + step))
        )
    for group, price in zip(groups, prices, strict=True):
        for i in group:
            if asks[i] <= price * worth[i] * (1 + 1e-14):
                paid[i] = price * worth[i]
    return paid
