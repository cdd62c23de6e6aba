"""What the paper says of its experiments, held against the rows of ours: every verdict is computed, none is written down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
RIVALS = ("regretnet", "m-regretnet")
DM = "dm-regretnet"
STILL_BUYS = 0.5  # of what the smallest M buys


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper (or what it leaves out), whether it holds here, and the numbers that say so."""

    claim: str
    outcome: str  # "holds", "holds in part", "does not hold", "cannot be told apart", "beyond the paper"
    evidence: str


def verdicts(name: str, rows: list[Row]) -> list[Verdict]:
    """The claims that a result speaks to."""
    return [claim(rows) for claim in CLAIMS[name]]


def _graded(held: int, of: int) -> str:
    return "holds" if held == of else "does not hold" if held == 0 else "holds in part"


def _paired(better: int, worse: int, of: int) -> str:
    """Of paired differences whose interval leaves out 0."""
    if worse:
        return "holds in part" if better else "does not hold"
    return _graded(better, of) if better else "cannot be told apart"


def _interval(row: Row, key: str, *about: str) -> str:
    where = ", ".join(str(row[name]) for name in about)
    return f"{row['auction']} {row[key]:+.3f} [{row[f'{key}_low']:+.3f}, {row[f'{key}_high']:+.3f}] ({where})"


def _place(row: Row) -> str:
    return f"{row['auction']}, {row['market']}, factor {row['budget_factor']:g}"


def _cells(rows: list[Row], *keys: str) -> dict[tuple[Any, ...], Row]:
    return {tuple(row[key] for key in keys): row for row in rows}


def _markets(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(row["market"] for row in rows))


def dm_has_the_least_error(rows: list[Row]) -> Verdict:
    cells = _cells(rows, "auction", "market", "rule", "budget_factor")
    held, of, told = 0, 0, []
    for rival in RIVALS:
        for market in _markets(rows):
            pairs = [
                (row["error_bound"], cells[rival, *place]["error_bound"])
                for (name, *place), row in cells.items()
                if name == DM and place[0] == market and (rival, *place) in cells
            ]
            wins = sum(mine < theirs for mine, theirs in pairs)
            held, of = held + wins, of + len(pairs)
            told.append(f"below {rival} in {wins} of {len(pairs)} settings ({market})")
    return Verdict(
        "DM-RegretNet has a lower error bound than RegretNet and M-RegretNet, under each rule",
        _graded(held, of),
        "; ".join(told)
        + ". Means are over valid gradients, as in the paper, which flatters whoever buys nothing in hard markets",
    )


def error_falls_beyond_factor_one(rows: list[Row]) -> Verdict:
    cells = _cells(rows, "market", "rule", "auction", "budget_factor")
    last = max(row["budget_factor"] for row in rows)
    told, held = [], 0
    places = [(market, rule) for market in _markets(rows) for rule in dict.fromkeys(row["rule"] for row in rows)]
    for market, rule in places:
        at_one, at_last = (cells[market, rule, DM, factor]["error_bound"] for factor in (1.0, last))
        held += at_last < at_one
        told.append(f"{at_one:.2f} to {at_last:.2f} ({market}, {rule})")
    claim = f"Error still falls when the budget factor exceeds 1 (here from 1 to {last:g})"
    return Verdict(claim, _graded(held, len(places)), "; ".join(told))


def others_beside_it(rows: list[Row]) -> Verdict:
    told = []
    for market in _markets(rows):
        mine = [
            row for row in rows if row["market"] == market and row["rule"] == "opt-aggr" and row.get("error_over_first_best")
        ]
        means: dict[str, list[float]] = {}
        for row in mine:
            means.setdefault(row["auction"], []).append(row["error_bound"])
        ordered = sorted((sum(values) / len(values), name) for name, values in means.items())
        told.append(f"{market}: " + ", ".join(f"{name} {mean:.2f}" for mean, name in ordered))
    return Verdict(
        "Mechanisms that the paper does not compare, mean error bound over all budget factors, OptAggr",
        "beyond the paper",
        "; ".join(told),
    )


def dm_is_always_valid(rows: list[Row]) -> Verdict:
    def worst(name: str) -> float:
        return max((float(row["invalid_rate"]) for row in rows if row["auction"] == name), default=0.0)

    rates = {name: worst(name) for name in (*RIVALS, DM)}
    told = ", ".join(f"{name} {rate:.2%}" for name, rate in rates.items())
    held = (rates[DM] == 0) + (max(rates[name] for name in RIVALS) > 0)
    return Verdict(
        "RegretNet and M-RegretNet sample invalid gradients, DM-RegretNet never does", _graded(held, 2),
        f"largest share of invalid gradients at any budget factor: {told}. Ours may sell nothing, which the published weights cannot",
    )  # fmt: skip


def opt_aggr_always_saves(rows: list[Row]) -> Verdict:
    mine = [
        row for row in rows if row["rule"] == "opt-aggr" and row.get("saving") is not None and row["saving"] == row["saving"]
    ]
    same = [row for row in mine if DM not in row["auction"]]
    least = min(same, key=lambda row: float(row["saving"]))
    most = max(same, key=lambda row: float(row["saving"]))
    own = [float(row["saving"]) for row in mine if DM in row["auction"]]
    return Verdict(
        "Under each auction OptAggr has a lower error bound than ConvlAggr",
        _graded(sum(row["saving"] >= 0 for row in mine), len(mine)),
        f"same allocations: from {least['saving']:.1%} ({_place(least)}) to {most['saving']:.1%} ({_place(most)}); "
        f"dm-regretnet, trained for each rule apart: {min(own):.1%} to {max(own):.1%}",
    )


def _last(rows: list[Row]) -> list[Row]:
    end = max(row["round"] for row in rows)
    return [row for row in rows if row["round"] == end]


def dm_is_more_accurate(rows: list[Row]) -> Verdict:
    others = [row for row in _last(rows) if row["auction"] in RIVALS]
    better = sum(row["over_baseline_high"] < 0 for row in others)
    worse = sum(row["over_baseline_low"] > 0 for row in others)
    told = "; ".join(_interval(row, "over_baseline", "market", "rule") for row in others)
    return Verdict(
        "DM-RegretNet leads to more accurate models than RegretNet and M-RegretNet",
        _paired(better, worse, len(others)),
        f"their accuracy minus its own, paired: {told}",
    )


def opt_aggr_is_more_accurate(rows: list[Row]) -> Verdict:
    mine = [row for row in _last(rows) if row["rule"] == "opt-aggr"]
    better = sum(row["over_last_rule_low"] > 0 for row in mine)
    worse = sum(row["over_last_rule_high"] < 0 for row in mine)
    told = "; ".join(_interval(row, "over_last_rule", "market") for row in mine)
    return Verdict(
        "OptAggr leads to more accurate models than ConvlAggr",
        _paired(better, worse, len(mine)),
        f"accuracy under OptAggr minus under ConvlAggr, paired: {told}",
    )


def more_levels_help(rows: list[Row]) -> Verdict:
    """From the smallest M to the largest that still buys: whoever buys nothing cannot be lied to, and proves nothing."""
    measures = {"as_published": "regret as published", "probed": "by the probe", "ir_violation": "IR violation"}
    told, fell, rose, of = [], 0, 0, 0
    for market in _markets(rows):
        mine = [row for row in rows if row["market"] == market]
        first = mine[0]
        buying = [row for row in mine if row["privacy_bought"] >= STILL_BUYS * first["privacy_bought"]]
        last = buying[-1]
        of += len(measures)
        fell += sum(last[f"{key}_high"] < first[f"{key}_low"] for key in measures)
        rose += sum(last[f"{key}_low"] > first[f"{key}_high"] for key in measures)
        parts = [f"{label} {first[key]:.3g} to {last[key]:.3g}" for key, label in measures.items()]
        parts.append(f"privacy bought {first['privacy_bought']:.0%} to {last['privacy_bought']:.0%}")
        told.append(f"{market}, M = {first['levels']} to {last['levels']}: {', '.join(parts)}")
        idle = [row for row in mine if row not in buying]
        if idle:
            shares = ", ".join(f"{row['privacy_bought']:.1%} at M = {row['levels']}" for row in idle)
            told.append(f"left out, since they buy less than half of that: {shares}")
    return Verdict(
        "A larger M decreases both regret and IR violation of M-RegretNet",
        _paired(fell, rose, of),
        "; ".join(told) + " (only intervals that lie apart count as a change)",
    )


def dm_is_most_truthful(rows: list[Row]) -> Verdict:
    held, of, told = 0, 0, []
    for key, label in (("as_published", "by the metric as published"), ("probe", "by the probe")):
        for market in _markets(rows):
            cells = {(row["auction"], row["rule"]): row[key] for row in rows if row["market"] == market}
            mine, theirs = cells[DM, "opt-aggr"], min(cells[name, "any"] for name in RIVALS)
            held, of = held + (mine < theirs), of + 1
            told.append(f"{mine:.3f} against {theirs:.3f} at best ({market}, {label})")
    return Verdict("DM-RegretNet has far lower regret than RegretNet and M-RegretNet", _graded(held, of), "; ".join(told))


def published_regret_is_what_it_is(rows: list[Row]) -> Verdict:
    mine = [row for row in rows if row["auction"] == f"published-{DM}" and row["rule"] == "opt-aggr"]
    if not mine:
        return Verdict(
            "The published weights have the published regret", "not asked", "needs the authors' files: --authors DIR"
        )
    row = mine[0]
    found = f"{row['probe']:.3f} [{row['probe_low']:.3f}, {row['probe_high']:.3f}]"
    return Verdict(
        "The published weights have the published regret",
        "holds" if row["probe_low"] <= row["paper_regret"] else "does not hold",
        f"paper {row['paper_regret']}; its metric finds {row['as_published']:.3f} (the paper's sample is not known), the corrected one "
        f"{row['corrected']:.3f}, the probe {found}; {row['gaining']:.0%} of owners can gain more than 1 %",
    )


def luck_is_most_of_it(rows: list[Row]) -> Verdict:
    mine = [row for row in rows if row["auction"].removeprefix("published-") in RIVALS and row["luck"] == row["luck"]]
    told = [f"{r['auction']} {r['as_published']:.3f} with lies, {r['luck']:.3f} without any ({r['market']})" for r in mine]
    return Verdict(
        "What the published metric calls regret when nobody lies (lotteries)", "beyond the paper", "; ".join(told)
    )


def where_the_money_goes(rows: list[Row]) -> Verdict:
    told = []
    for market in _markets(rows):
        mine = [row for row in rows if (row["market"], row["rule"], row["budget_factor"]) == (market, "opt-aggr", 1.0)]
        spent = [row for row in mine if row.get("spent_share") is not None]
        parts = [f"{r['auction']} spends {r['spent_share']:.0%}, owners keep {r['surplus_share']:.0%}" for r in spent]
        told.append(f"{market}: {', '.join(parts)}")
    return Verdict("At budget factor 1, of the budget", "beyond the paper", "; ".join(told))


CLAIMS: dict[str, tuple[Callable[[list[Row]], Verdict], ...]] = {
    "error-bound": (dm_has_the_least_error, error_falls_beyond_factor_one, others_beside_it),
    "invalid-gradients": (dm_is_always_valid,),
    "aggregation": (opt_aggr_always_saves,),
    "accuracy": (dm_is_more_accurate, opt_aggr_is_more_accurate),
    "levels": (more_levels_help,),
    "guarantees": (published_regret_is_what_it_is, dm_is_most_truthful, luck_is_most_of_it),
    "surplus": (where_the_money_goes,),
}
