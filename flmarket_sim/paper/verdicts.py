"""Verdicts on claims: how intervals decide whether a claim holds, and what the evidence says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from flmarket_sim.paper.paper_market import PUBLISHED

Row = dict[str, Any]
RIVALS = ("regretnet", "m-regretnet")
DM = "dm-regretnet"
OURS, AUTHORS = "weights trained here", "published weights"
NETWORKS = {"": OURS, PUBLISHED: AUTHORS}
BEYOND = "beyond the paper"
NO_RIVAL = " or ".join(RIVALS)
APART = " (only intervals that lie apart count)"
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


def outcome_of(better: int, worse: int, total: int) -> str:
    """The outcome of `total` comparisons, of which so many speak for and against the claim.

    A comparison counts if the interval of a difference leaves out 0, or if two intervals lie apart.
    """
    if worse:
        return "holds in part" if better else "does not hold"
    if not better:
        return "cannot be told apart"
    return "holds" if better == total else "holds in part"


def outcome_of_signs(signs: list[int]) -> str:
    return outcome_of(signs.count(1), signs.count(-1), len(signs))


def outcome_of_differences(rows: list[Row], key: str, sign: int = 1) -> str:
    """The claim says that the difference `key` is positive (sign 1) or negative (-1)."""
    above = sum(row[f"{key}_low"] > 0 for row in rows)
    below = sum(row[f"{key}_high"] < 0 for row in rows)
    return outcome_of(*((above, below) if sign > 0 else (below, above)), len(rows))


def below(row: Row, rival: Row, key: str) -> int:
    """1 if the row's interval lies below the rival's, -1 if it lies above, else 0."""
    return int(row[f"{key}_high"] < rival[f"{key}_low"]) - int(
        row[f"{key}_low"] > rival[f"{key}_high"]
    )


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
