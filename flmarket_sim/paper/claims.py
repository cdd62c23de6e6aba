"""What the paper says of its experiments, held against the rows of ours: every verdict is computed, none is written down.

Where the authors' published weights were measured too, a claim about their networks is judged for these and for ours apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from flmarket_sim.paper.paper_market import PUBLISHED

Row = dict[str, Any]
RIVALS = ("regretnet", "m-regretnet")
DM = "dm-regretnet"
STILL_BUYS = 0.5  # of what the smallest M buys
OURS, THEIRS = "weights trained here", "published weights"
NETWORKS = {"": OURS, PUBLISHED: THEIRS}


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim of the paper (or what it leaves out), whether it holds here, and the numbers that say so."""

    claim: str
    outcome: str  # "holds", "holds in part", "does not hold", "cannot be told apart", "not asked", "beyond the paper"
    evidence: str


class NotAsked(Exception):
    """The rows do not speak to a claim: it was not asked for."""


def verdicts(name: str, rows: list[Row]) -> list[ClaimVerdict]:
    """The claims that a result speaks to."""
    found = []
    for claim, judge in CLAIMS[name]:
        try:
            found += [
                ClaimVerdict(claim.format(networks=whose), *told) for whose, told in judge(rows)
            ]
        except NotAsked as missing:
            found.append(
                ClaimVerdict(
                    claim.format(networks=OURS), "not asked", f"these rows have no {missing}"
                )
            )
    return found


Judged = Iterable[tuple[str, tuple[str, str]]]  # whose networks, and outcome and evidence


def _paired(better: int, worse: int, of: int) -> str:
    """Of differences whose interval leaves out 0, or of estimates whose intervals lie apart."""
    if worse:
        return "holds in part" if better else "does not hold"
    if not better:
        return "cannot be told apart"
    return "holds" if better == of else "holds in part"


def _below(mine: Row, theirs: Row, key: str) -> int:
    """1 where an interval lies below another, -1 where it lies above, else 0."""
    return int(mine[f"{key}_high"] < theirs[f"{key}_low"]) - int(
        mine[f"{key}_low"] > theirs[f"{key}_high"]
    )


def _counted(signs: list[int]) -> tuple[int, int]:
    return signs.count(1), signs.count(-1)


def _interval(row: Row, key: str, *about: str) -> str:
    where = ", ".join(str(row[name]) for name in about)
    return f"{row['auction']} {row[key]:+.3f} [{row[f'{key}_low']:+.3f}, {row[f'{key}_high']:+.3f}] ({where})"


def _place(row: Row) -> str:
    return f"{row['auction']}, {row['market']}, factor {row['budget_factor']:g}"


def _cells(rows: list[Row], *keys: str) -> dict[tuple[Any, ...], Row]:
    return {tuple(row[key] for key in keys): row for row in rows}


def _markets(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(row["market"] for row in rows))


def _measured(rows: list[Row], key: str) -> list[Row]:
    return [row for row in rows if row.get(key) is not None and row[key] == row[key]]


def _whose(rows: list[Row]) -> list[tuple[str, str]]:
    """Prefix and description of the networks that the rows have; ours come first."""
    there = {row["auction"] for row in rows}
    found = [(prefix, whose) for prefix, whose in NETWORKS.items() if prefix + DM in there]
    if not found:
        raise NotAsked(DM)
    return found


def dm_has_the_least_error(rows: list[Row]) -> Judged:
    cells = _cells(_measured(rows, "error_bound_low"), "auction", "market", "rule", "budget_factor")
    for prefix, whose in _whose(rows):
        all_signs: list[int] = []
        told = []
        for rival in (prefix + name for name in RIVALS):
            for market in _markets(rows):
                signs = [
                    _below(row, cells[rival, *place], "error_bound")
                    for (name, *place), row in cells.items()
                    if name == prefix + DM and place[0] == market and (rival, *place) in cells
                ]
                if signs:
                    below, above = _counted(signs)
                    told.append(
                        f"below {rival} in {below} of {len(signs)} settings, above in {above} ({market})"
                    )
                all_signs += signs
        if not all_signs:
            raise NotAsked(" or ".join(RIVALS))
        evidence = (
            "; ".join(told)
            + " (only intervals that lie apart count). Means are over valid gradients, as in the paper, "
        )
        yield (
            whose,
            (
                _paired(*_counted(all_signs), len(all_signs)),
                f"{evidence}which flatters whoever buys nothing in hard markets",
            ),
        )


def error_falls_beyond_factor_one(rows: list[Row]) -> Judged:
    cells = _cells(rows, "market", "rule", "auction", "budget_factor")
    last = max(row["budget_factor"] for row in rows)
    for prefix, whose in _whose(rows):
        told, signs = [], []
        for market, rule in dict.fromkeys((row["market"], row["rule"]) for row in rows):
            at_last, at_one = (
                cells.get((market, rule, prefix + DM, factor)) for factor in (last, 1.0)
            )
            if at_one is None or at_last is None or last <= 1.0:
                continue
            signs.append(_below(at_last, at_one, "error_bound"))
            told.append(
                f"{at_one['error_bound']:.2f} to {at_last['error_bound']:.2f} at factor {last:g} ({market}, {rule})"
            )
        if not signs:
            raise NotAsked("budget factor of 1 and one above")
        yield whose, (_paired(*_counted(signs), len(signs)), "; ".join(told))


def others_beside_it(rows: list[Row]) -> Judged:
    told = []
    for market in _markets(rows):
        mine = [
            row
            for row in rows
            if row["market"] == market
            and row["rule"] == "opt-aggr"
            and row.get("error_over_first_best")
        ]
        means: dict[str, list[float]] = {}
        for row in mine:
            means.setdefault(row["auction"], []).append(row["error_bound"])
        ordered = sorted((sum(values) / len(values), name) for name, values in means.items())
        told.append(f"{market}: " + ", ".join(f"{name} {mean:.2f}" for mean, name in ordered))
    yield "", ("beyond the paper", "; ".join(told))


def dm_is_always_valid(rows: list[Row]) -> Judged:
    for prefix, whose in _whose(rows):
        worst: dict[str, Row] = {}
        for name in (*RIVALS, DM):
            mine = [row for row in rows if row["auction"] == prefix + name]
            if mine:
                worst[name] = max(mine, key=lambda row: float(row["invalid_rate"]))
        if DM not in worst or len(worst) < 2:
            raise NotAsked(" or ".join(RIVALS))
        sampled = [float(row["invalid_rate"]) > 0 for name, row in worst.items() if name != DM]
        held = (float(worst[DM]["invalid_rate"]) == 0) + any(sampled)
        told = "; ".join(
            f"{row['auction']} {row['invalid_rate']:.2%} ({row['market']}, {row['rule']}, factor {row['budget_factor']:g})"
            if row["invalid_rate"]
            else f"{row['auction']} 0"
            for row in worst.values()
        )
        outcome = ("does not hold", "holds in part", "holds")[held]
        yield whose, (outcome, f"largest share of invalid gradients anywhere: {told}")


def opt_aggr_always_saves(rows: list[Row]) -> Judged:
    mine = [row for row in _measured(rows, "saving") if row["rule"] == "opt-aggr"]
    same = [row for row in mine if DM not in row["auction"]]
    told = []
    if same:
        least, most = (pick(same, key=lambda row: float(row["saving"])) for pick in (min, max))
        told.append(
            f"same allocations: from {least['saving']:.1%} ({_place(least)}) to {most['saving']:.1%} ({_place(most)})"
        )
    for prefix, whose in NETWORKS.items():
        own = [float(row["saving"]) for row in mine if row["auction"] == prefix + DM]
        if own:
            told.append(
                f"{DM}, trained for each rule apart: {min(own):.1%} to {max(own):.1%} ({whose})"
            )
    if not told:
        raise NotAsked("rule but one")
    better, worse = (
        sum(row["saving_low"] > 0 for row in mine),
        sum(row["saving_high"] < 0 for row in mine),
    )
    yield "", (_paired(better, worse, len(mine)), "; ".join(told))


def _last(rows: list[Row]) -> list[Row]:
    end = max(row["round"] for row in rows)
    return [row for row in rows if row["round"] == end]


def dm_is_more_accurate(rows: list[Row]) -> Judged:
    """The accuracy study compares with its first auction, which must be the one that the claim is about."""
    for prefix, whose in _whose(rows):
        others = [
            row
            for row in _measured(_last(rows), "over_baseline_low")
            if row["auction"] in {prefix + name for name in RIVALS}
        ]
        if not others:
            raise NotAsked(" or ".join(RIVALS) + " on two seeds")
        better = sum(row["over_baseline_high"] < 0 for row in others)
        worse = sum(row["over_baseline_low"] > 0 for row in others)
        told = "; ".join(_interval(row, "over_baseline", "market", "rule") for row in others)
        yield (
            whose,
            (_paired(better, worse, len(others)), f"their accuracy minus its own, paired: {told}"),
        )


def opt_aggr_is_more_accurate(rows: list[Row]) -> Judged:
    mine = [
        row for row in _measured(_last(rows), "over_last_rule_low") if row["rule"] == "opt-aggr"
    ]
    if not mine:
        raise NotAsked("opt-aggr on two seeds")
    better = sum(row["over_last_rule_low"] > 0 for row in mine)
    worse = sum(row["over_last_rule_high"] < 0 for row in mine)
    told = "; ".join(_interval(row, "over_last_rule", "market") for row in mine)
    yield (
        "",
        (
            _paired(better, worse, len(mine)),
            f"accuracy under OptAggr minus under ConvlAggr, paired: {told}",
        ),
    )


def more_levels_help(rows: list[Row]) -> Judged:
    """From the smallest M to the largest that still buys: whoever buys nothing cannot be lied to, and proves nothing."""
    measures = {
        "as_published": "regret as published",
        "probed": "by the probe",
        "ir_violation": "IR violation",
    }
    told: list[str] = []
    signs: list[int] = []
    for market in _markets(rows):
        mine = [row for row in rows if row["market"] == market]
        first = mine[0]
        buying = [
            row for row in mine if row["privacy_bought"] >= STILL_BUYS * first["privacy_bought"]
        ]
        last = buying[-1]
        signs += [_below(last, first, key) for key in measures]
        parts = [f"{label} {first[key]:.3g} to {last[key]:.3g}" for key, label in measures.items()]
        parts.append(
            f"privacy bought {first['privacy_bought']:.0%} to {last['privacy_bought']:.0%}"
        )
        told.append(f"{market}, M = {first['levels']} to {last['levels']}: {', '.join(parts)}")
        idle = [row for row in mine if row not in buying]
        if idle:
            shares = ", ".join(
                f"{row['privacy_bought']:.1%} at M = {row['levels']}" for row in idle
            )
            told.append(f"left out, since they buy less than half of that: {shares}")
    yield (
        "",
        (
            _paired(*_counted(signs), len(signs)),
            "; ".join(told) + " (only intervals that lie apart count as a change)",
        ),
    )


def dm_is_most_truthful(rows: list[Row]) -> Judged:
    for prefix, whose in _whose(rows):
        signs, told = [], []
        for key, label in (
            ("as_published", "by the metric as published"),
            ("probe", "by the probe"),
        ):
            for market in _markets(rows):
                cells = _cells(
                    [row for row in _measured(rows, key) if row["market"] == market],
                    "auction",
                    "rule",
                )
                mine = cells.get((prefix + DM, "opt-aggr"))
                others = [
                    cells[prefix + name, "any"]
                    for name in RIVALS
                    if (prefix + name, "any") in cells
                ]
                if mine is None or not others:
                    continue
                theirs = min(others, key=lambda row: float(row[key]))
                signs.append(_below(mine, theirs, key))
                told.append(
                    f"{mine[key]:.3f} against {theirs[key]:.3f} of {theirs['auction']} ({market}, {label})"
                )
        if not signs:
            raise NotAsked(" or ".join(RIVALS))
        yield (
            whose,
            (
                _paired(*_counted(signs), len(signs)),
                "; ".join(told) + " (only intervals that lie apart count)",
            ),
        )


def published_regret_is_what_it_is(rows: list[Row]) -> Judged:
    mine = [row for row in rows if row["auction"] == PUBLISHED + DM and row["rule"] == "opt-aggr"]
    if not mine:
        raise NotAsked("published weights: --authors DIR names the folder of the authors' files")
    row = mine[0]
    found = f"{row['probe']:.3f} [{row['probe_low']:.3f}, {row['probe_high']:.3f}]"
    yield (
        "",
        (
            "holds" if row["probe_low"] <= row["paper_regret"] else "does not hold",
            f"paper {row['paper_regret']}; its metric finds {row['as_published']:.3f} (the paper's test markets are not known), the "
            f"corrected one {row['corrected']:.3f}, the probe {found}; {row['gaining']:.0%} of owners can gain more than 1 %",
        ),
    )


def luck_is_most_of_it(rows: list[Row]) -> Judged:
    mine = [
        row for row in _measured(rows, "luck") if row["auction"].removeprefix(PUBLISHED) in RIVALS
    ]
    told = [
        f"{r['auction']} {r['as_published']:.3f} with lies, {r['luck']:.3f} without any ({r['market']})"
        for r in mine
    ]
    yield "", ("beyond the paper", "; ".join(told))


def where_the_money_goes(rows: list[Row]) -> Judged:
    told = []
    for market in _markets(rows):
        mine = [
            row
            for row in rows
            if (row["market"], row["rule"], row["budget_factor"]) == (market, "opt-aggr", 1.0)
        ]
        spent = [row for row in mine if row.get("spent_share") is not None]
        parts = [
            f"{r['auction']} spends {r['spent_share']:.0%}, owners keep {r['surplus_share']:.0%}"
            for r in spent
        ]
        told += [f"{market}: {', '.join(parts)}"] if parts else []
    if not told:
        raise NotAsked("budget factor of 1")
    yield "", ("beyond the paper", "; ".join(told))


Judge = Callable[[list[Row]], Judged]
CLAIMS: dict[str, tuple[tuple[str, Judge], ...]] = {
    "error-bound": (
        (
            "DM-RegretNet has a lower error bound than RegretNet and M-RegretNet, under each rule ({networks})",
            dm_has_the_least_error,
        ),
        (
            "Error still falls when the budget factor exceeds 1 ({networks})",
            error_falls_beyond_factor_one,
        ),
        (
            "Mechanisms that the paper does not compare, mean error bound over all budget factors, OptAggr",
            others_beside_it,
        ),
    ),
    "invalid-gradients": (
        (
            "RegretNet and M-RegretNet sample invalid gradients, DM-RegretNet never does ({networks})",
            dm_is_always_valid,
        ),
    ),
    "aggregation": (
        (
            "Under each auction OptAggr has a lower error bound than ConvlAggr",
            opt_aggr_always_saves,
        ),
    ),
    "accuracy": (
        (
            "DM-RegretNet leads to more accurate models than RegretNet and M-RegretNet ({networks})",
            dm_is_more_accurate,
        ),
        ("OptAggr leads to more accurate models than ConvlAggr", opt_aggr_is_more_accurate),
    ),
    "levels": (
        ("A larger M decreases both regret and IR violation of M-RegretNet", more_levels_help),
    ),
    "guarantees": (
        ("The published weights have the published regret", published_regret_is_what_it_is),
        (
            "DM-RegretNet has far lower regret than RegretNet and M-RegretNet ({networks})",
            dm_is_most_truthful,
        ),
        ("What the published metric calls regret when nobody lies (lotteries)", luck_is_most_of_it),
    ),
    "surplus": (("At budget factor 1, of the budget", where_the_money_goes),),
}
