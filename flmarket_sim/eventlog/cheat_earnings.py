"""What owners kept of their sales by what they did after them, and how often they were accused."""

from __future__ import annotations

import os
from typing import Any

from flmarket_sim.eventlog.reader import sql

HONEST = "honest"

_EARNED = f"""
WITH sent AS (SELECT g.buyer, g.round, g.sender, g.privacy_loss,
                     coalesce(c.cheat, '{HONEST}') AS cheat,
                     coalesce(c.true_privacy_loss, g.privacy_loss) AS lost,
                     coalesce(c.true_value, d.value) AS cost
              FROM gradient g
              LEFT JOIN cheat c ON c.sender = g.sender AND c.round = g.round AND c.buyer = g.buyer
              LEFT JOIN decision d ON d.sender = g.sender AND d.round = g.round
                                   AND d.buyer = g.buyer)
SELECT sent.cheat, count(*) AS sales, count(v.accused) AS judged,
       sum(coalesce(v.accused::int, 0)) AS accused, sum(sent.privacy_loss) AS sold,
       sum(sent.lost) AS lost, sum(coalesce(p.amount, 0)) AS paid,
       sum(coalesce(f.amount, 0)) AS forfeited, sum(sent.cost) AS cost
FROM sent
LEFT JOIN payment p ON p.receiver = sent.sender AND p.round = sent.round AND p.buyer = sent.buyer
LEFT JOIN forfeit f ON f.sender = sent.sender AND f.round = sent.round AND f.buyer = sent.buyer
LEFT JOIN verdict v ON v.receiver = sent.sender AND v.round = sent.round AND v.buyer = sent.buyer
GROUP BY sent.cheat ORDER BY sent.cheat
"""


def cheat_earnings(run: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """For each cheat, and for honest sales: sales, those that a check judged and accused, privacy
    sold and truly lost, and payments, lost deposits and true costs."""
    return {
        row["cheat"]: {
            "sales": int(row["sales"]),
            "judged": int(row["judged"]),
            "accused": int(row["accused"]),
            **{key: float(row[key]) for key in ("sold", "lost", "paid", "forfeited", "cost")},
        }
        for row in sql(run, _EARNED).to_pylist()
    }


def sentence(found: dict[str, dict[str, Any]]) -> str:
    """The same in words."""
    parts = []
    for name, of in found.items():
        kept = (of["paid"] - of["forfeited"] - of["cost"]) / of["sales"]
        caught = f", {of['accused']} of {of['judged']} accused" if of["judged"] else ""
        parts.append(f"{name} {kept:,.2f}{caught}")
    return f"Owners kept above their true cost, a sale: {'; '.join(parts)}."
