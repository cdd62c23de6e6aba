"""What owners of each behaviour earned, beside those who told the truth."""

from __future__ import annotations

import os
from typing import Any

from flmarket_sim.eventlog.reader import read_owners, sql

TRUTH = "no behaviour"

# one bid is one owner's in one auction, under however many names
_EARNED = f"""
WITH bids AS (SELECT buyer, round, sender, coalesce(person, sender) AS owner,
                     coalesce(behaviour, '{TRUTH}') AS behaviour FROM bid),
     earned AS (
        SELECT bids.behaviour, bids.owner, bids.buyer, bids.round,
               count(g.sender) AS sales,
               sum(coalesce(p.amount, 0) - coalesce(f.amount, 0)
                   - CASE WHEN g.sender IS NULL THEN 0 ELSE coalesce(c.true_value, d.value) END
                  ) AS surplus
        FROM bids
        LEFT JOIN gradient g ON g.sender = bids.sender AND g.round = bids.round
                            AND g.buyer = bids.buyer
        LEFT JOIN payment p ON p.receiver = bids.sender AND p.round = bids.round
                           AND p.buyer = bids.buyer
        LEFT JOIN forfeit f ON f.sender = bids.sender AND f.round = bids.round
                           AND f.buyer = bids.buyer
        LEFT JOIN decision d ON d.sender = bids.sender AND d.round = bids.round
                            AND d.buyer = bids.buyer
        LEFT JOIN cheat c ON c.sender = bids.sender AND c.round = bids.round
                         AND c.buyer = bids.buyer
        GROUP BY ALL)
SELECT behaviour, count(*) AS bids, sum(sales) AS sales, sum(surplus) AS surplus
FROM earned GROUP BY behaviour ORDER BY behaviour
"""
_BY_TRUTH = """
SELECT bid.behaviour, avg(c.utility) AS utility, avg(c.truthful_utility) AS truthful_utility
FROM counterfactual c
JOIN bid ON bid.sender = c.sender AND bid.round = c.round AND bid.buyer = c.buyer
GROUP BY bid.behaviour
"""


def earnings(run: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """For each behaviour, and for bids without one: owners, bids, sales, and money above cost a bid
    and a sale.

    A sale is a message that left its owner, in time or not. Its money is the payment less a lost
    deposit, and its cost is what the message truly cost her: the sum over all bids is that of the
    ledger, where that books true costs. With counterfactuals also what the offers were worth a bid,
    and what those to the truth would have been. Transfers among owners of one behaviour sum to
    zero, and so do not show.
    """
    owners = read_owners(run).column("behaviour").to_pylist()
    by_truth = {row["behaviour"]: row for row in sql(run, _BY_TRUTH).to_pylist()}
    found = {}
    for row in sql(run, _EARNED).to_pylist():
        label, surplus, sales = row["behaviour"], float(row["surplus"]), int(row["sales"])
        found[label] = {
            "owners": owners.count(None if label == TRUTH else label),
            "bids": int(row["bids"]),
            "sales": sales,
            "surplus_per_bid": surplus / int(row["bids"]),
            "surplus_per_sale": surplus / sales if sales else None,
        }
        if label in by_truth:
            found[label]["offered_per_bid"] = by_truth[label]["utility"]
            found[label]["offered_per_bid_by_truth"] = by_truth[label]["truthful_utility"]
    return found


def sentence(found: dict[str, dict[str, Any]]) -> str:
    """The same in words."""
    liars = [
        f"{numbers['owners']} {label} {_money(numbers)}"
        for label, numbers in found.items()
        if label != TRUTH
    ]
    honest = [f"bids without a behaviour {_money(found[TRUTH])}"] if TRUTH in found else []
    return f"Owners kept above cost, a bid: {'; '.join(liars + honest)}."


def _money(numbers: dict[str, Any]) -> str:
    kept = f"{numbers['surplus_per_bid']:,.2f}"
    if "offered_per_bid" not in numbers:
        return kept
    offered, truthful = numbers["offered_per_bid"], numbers["offered_per_bid_by_truth"]
    return f"{kept} (offered {offered:,.2f}, to the truth {truthful:,.2f})"
