"""Verdicts on claims: which comparisons decide whether a claim holds, and what the evidence says.

A claim rests on many comparisons. Each has two p-values, for and against the claim, from the
intervals of the two means. Holm's procedure decides over all of them together, so the chance that
any comparison of a claim counts by accident is at most 5 %.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from flmarket_sim.paper.paper_market import PUBLISHED
from flmarket_sim.statistics import Estimate, holm, p_below

Row = dict[str, Any]
RIVALS = ("regretnet", "m-regretnet")
DM = "dm-regretnet"
OURS, AUTHORS = "weights trained here", "published weights"
NETWORKS = {"": OURS, PUBLISHED: AUTHORS}
BEYOND = "beyond the paper"
NO_RIVAL = " or ".join(RIVALS)
APART = " (comparisons count after Holm's correction at 5 %)"
Ruling = tuple[str, str, str]  # the networks it is about (may be empty), outcome, evidence


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim of the paper (or a topic that it leaves out), whether it holds here, and why.

    outcome    "holds", "holds in part", "does not hold", "cannot be told apart", "not asked" or
               "beyond the paper"
    evidence   the numbers from which the outcome follows
    """

    claim: str
    outcome: str
    evidence: str


class NotAsked(Exception):
    """The rows hold nothing about a claim, because the study left it out."""


@dataclass(frozen=True)
class Comparison:
    """A comparison that a claim rests on, by the p-values of two hypotheses.

    supports      p-value of "the claim's direction is wrong": a small one supports the claim
    contradicts   p-value of "the claim's direction is right": a small one contradicts it
    """

    supports: float
    contradicts: float


def is_below(row: Row, rival: Row, key: str) -> Comparison:
    """The comparison of a claim that the mean `key` is lower in `row` than in `rival`."""
    first, second = _estimate(row, key), _estimate(rival, key)
    return Comparison(p_below(first, second), p_below(second, first))


def is_positive(row: Row, key: str) -> Comparison:
    """The comparison of a claim that the difference `key` is positive."""
    zero, difference = Estimate(0.0, 0.0, 0.0), _estimate(row, key)
    return Comparison(p_below(zero, difference), p_below(difference, zero))


def is_negative(row: Row, key: str) -> Comparison:
    opposite = is_positive(row, key)
    return Comparison(opposite.contradicts, opposite.supports)


def signs_of(comparisons: list[Comparison]) -> list[int]:
    """1 where a comparison supports the claim, -1 where it contradicts it, else 0, by Holm."""
    both = [p for each in comparisons for p in (each.supports, each.contradicts)]
    counts = holm(both)
    return [int(counts[k]) - int(counts[k + 1]) for k in range(0, len(both), 2)]


def outcome_of(signs: list[int], always: bool = False) -> str:
    """The outcome of a claim's comparisons. A claim of "always" fails by a single one."""
    better, worse = signs.count(1), signs.count(-1)
    if worse:
        return "holds in part" if better and not always else "does not hold"
    if not better:
        return "cannot be told apart"
    return "holds" if better == len(signs) else "holds in part"


def _estimate(row: Row, key: str) -> Estimate:
    return Estimate(row[key], row[f"{key}_low"], row[f"{key}_high"])


def interval(row: Row, key: str, *places: str) -> str:
    where = ", ".join(str(row[name]) for name in places)
    ends = f"[{row[f'{key}_low']:+.3f}, {row[f'{key}_high']:+.3f}]"
    return f"{row['auction']} {row[key]:+.3f} {ends} ({where})"


def cells(rows: list[Row], *keys: str) -> dict[tuple[Any, ...], Row]:
    return {tuple(row[key] for key in keys): row for row in rows}


def by_market(rows: list[Row]) -> dict[str, list[Row]]:
    markets: dict[str, list[Row]] = {}
    for row in rows:
        markets.setdefault(row["market"], []).append(row)
    return markets


def measured(rows: list[Row], key: str) -> list[Row]:
    """The rows that have a number in column `key`."""
    return [row for row in rows if row.get(key) is not None and row[key] == row[key]]


def last_round(rows: list[Row]) -> list[Row]:
    end = max(row["round"] for row in rows)
    return [row for row in rows if row["round"] == end]


def networks(rows: list[Row]) -> Iterator[tuple[str, str]]:
    """Prefix and description of the networks in the rows; those trained here come first."""
    auctions = {row["auction"] for row in rows}
    present = [(prefix, owner) for prefix, owner in NETWORKS.items() if prefix + DM in auctions]
    if not present:
        raise NotAsked(DM)
    yield from present


def joined(parts: Iterable[str], missing: str) -> str:
    """The evidence as one sentence; without any part, `missing` says what the rows lack."""
    text = "; ".join(parts)
    if not text:
        raise NotAsked(missing)
    return text
