"""Why our results differ from the paper's: a paragraph on method for each result, and a sentence on every large difference in its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flmarket_sim.paper.claims import DM, RIVALS
from flmarket_sim.paper.paper_market import PUBLISHED, rule_name

Row = dict[str, Any]
Options = dict[str, Any]
FAR_OFF = 100.0  # an error bound beyond the figure


def why(name: str, rows: list[Row], options: Options) -> list[str]:
    """The paragraph of a result, then its sentences; `options` are those of its study."""
    sentences = SENTENCES[name](rows) if name in SENTENCES else []
    return [METHOD[name].format(**options), *sentences]


METHOD: dict[str, str] = {
    "error-bound": (
        "The paper prints curves without numbers. Its networks are here twice: with weights trained by this package (which may sell "
        "nothing, and were trained against stronger lies), and, where the authors' files are at hand, with the published ones; those for "
        "the non-IID market are not. Aggregation is by the exact optimum of the paper's Problem 1; the paper's own code solves a narrower "
        "problem. all-in and all-in-critical have the same winners, so their curves are one."
    ),
    "invalid-gradients": (
        "The published DM-RegretNet drops the level 'sells nothing' before it chooses, so that everybody sells something, at a loss if "
        "need be; ours keeps it, and may buy nothing where the money is short. Our RegretNet and M-RegretNet are other instances, trained "
        "to another regret, and need not be invalid as often as the paper's."
    ),
    "aggregation": (
        "For the same allocation the exact OptAggr cannot lose. dm-regretnet is the exception to 'the same': it is trained for each rule "
        "apart, so the comparison is of two auctions as well. The saving is smaller than curves on a linear scale suggest where everybody "
        "sells alike."
    ),
    "accuracy": (
        "The paper shows one curve each, without intervals. Ten gradients a round with noise of scale 2L/e on each of some hundred "
        "parameters hide the signal: accuracies of single runs differ by tens of percentage points. What cannot be told apart with these "
        "seeds is called so. Owners accept what they are allocated, as the paper assumes."
    ),
    "levels": (
        "The paper trains by an augmented Lagrangian against gradient ascent, for 50 epochs of 102,400 profiles, and does not say how much "
        "privacy its instances buy. Ours steers its own estimate of regret to the same small target for every M, against random structured "
        "lies, in {steps} steps of {batch} profiles; what differs by M is then what that search does not see, and how much is bought. An "
        "instance that buys almost nothing has no regret and no IR violation, and is not what the paper means: such are in the table, and "
        "not in the verdict. The paper's metric draws lots and divides by the expected cost, so that its noise depends on M: the less "
        "likely a sale, the larger a lucky draw is beside what it costs on average."
    ),
    "guarantees": (
        "The published metric is a lower bound from a weak attack: the last of 100 plain gradient steps of size 0.1 from the truth, "
        "through a choice of levels that carries no gradient; for lotteries it takes the difference of two draws over the expected cost "
        "of what is sold, which is mostly luck. Which markets the paper tests on, and in which units its steps are taken, is not in the "
        "paper."
    ),
    "surplus": (
        "The paper does not report it. Welfare has no single number as long as error has no price: its parts are the buyer's error "
        "(figure 1), what she spends, and what owners keep above what their privacy is worth to them."
    ),
}


def _off_the_figure(rows: list[Row]) -> list[str]:
    """Whose error lies beyond the axis, and why."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if row["error_bound"] is not None and row["error_bound"] > FAR_OFF:
            found.setdefault((row["auction"], row["market"], row["rule"]), []).append(row)
    told = []
    for (auction, market, rule), mine in found.items():
        everywhere = len(mine) == sum(
            (r["auction"], r["market"], r["rule"]) == (auction, market, rule) for r in rows
        )
        where = (
            "at every factor"
            if everywhere
            else f"up to factor {max(r['budget_factor'] for r in mine):g}"
        )
        worst = max(float(r["error_bound"]) for r in mine)
        told.append(
            f"Above {FAR_OFF:g}, and so beyond the figure: {auction} under {rule_name(rule)} ({market}) {where}, {worst:.3g} at worst: "
            + (_BY_SIZE if rule == "convl-aggr" else _SELLS_LITTLE)
        )
    return told


_BY_SIZE = "it weighs by size alone, so that one large owner who sells next to nothing decides the error, which OptAggr would leave out."
_SELLS_LITTLE = "it mostly buys the lowest levels, whose noise no weights can mend."


def _poor_networks(rows: list[Row]) -> list[str]:
    """Networks whose money buys little: what they spend and the error that is left."""
    told = []
    for name in (*RIVALS, DM):
        for prefix in ("", PUBLISHED):
            for market in dict.fromkeys(row["market"] for row in rows):
                place = (prefix + name, market, "opt-aggr", 1.0)
                mine = [
                    r
                    for r in rows
                    if (r["auction"], r["market"], r["rule"], r["budget_factor"]) == place
                ]
                if (
                    mine
                    and mine[0]["error_over_first_best"]
                    and mine[0]["error_over_first_best"] > 5
                ):
                    row = mine[0]
                    told.append(
                        f"{prefix}{name} ({market}) has {row['error_over_first_best']:.0f} times the least possible error at factor 1, "
                        f"while it spends {row['spent_share']:.0%} of the budget and gets nothing in {row['invalid_rate']:.0%} of markets: "
                        "it was trained for the privacy that is bought, weighted by size, as in the paper, and not for the error."
                    )
    return told


def _beside_the_table(rows: list[Row]) -> list[str]:
    """Every number of the paper's table beside ours."""
    told = []
    for row in rows:
        if row["paper_regret"] is None:
            continue
        theirs = row["auction"].startswith(PUBLISHED)
        parts = []
        for what, paper, key in (
            ("regret", row["paper_regret"], "as_published"),
            ("IR violation", row["paper_ir"], "ir_as_published"),
        ):
            inside = row[f"{key}_low"] <= paper <= row[f"{key}_high"]
            parts.append(
                f"{what} {paper:g} there, {row[key]:.3g} here"
                + (" (the same within its interval)" if inside else "")
            )
        why = (
            "the same weights, on other markets, with steps in units of our choice"
            if theirs
            else "another network, trained here to another regret and IR violation"
        )
        told.append(
            f"{row['market']}, {row['auction']} ({row['rule']}): {', '.join(parts)}: {why}."
        )
    return told


SENTENCES: dict[str, Callable[[list[Row]], list[str]]] = {
    "error-bound": lambda rows: _poor_networks(rows) + _off_the_figure(rows),
    "guarantees": _beside_the_table,
}
