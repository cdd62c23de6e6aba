"""The owners of a run as charts: payments, privacy sold, and gains of misreports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from flmarket_sim.eventlog import read_ledger, sql
from flmarket_sim.eventlog.behaviour_earnings import TRUTH
from flmarket_sim.report.html.parts import POINTS, ROWS, Chart, Series, Table, evenly, sampled
from flmarket_sim.statistics import estimate

_SALES = """
SELECT coalesce(c.true_value, d.value) AS value, p.amount, p.round, p.buyer,
       p.receiver % {count} AS owner, o.family,
       coalesce(o.behaviour, '{truth}') AS behaviour
FROM payment p
JOIN decision d ON d.sender = p.receiver AND d.round = p.round AND d.buyer = p.buyer
LEFT JOIN cheat c ON c.sender = p.receiver AND c.round = p.round AND c.buyer = p.buyer
JOIN owners o ON o.owner = p.receiver % {count}
WHERE p.receiver >= 0 AND coalesce(c.true_value, d.value) IS NOT NULL ORDER BY p.seq
"""
# Names of one owner have disjoint records: a round costs her the largest of their losses.
_SOLD = """
SELECT owner, sum(lost) AS privacy_sold FROM (
    SELECT sender % {count} AS owner, buyer, round, max(privacy_loss) AS lost
    FROM gradient GROUP BY ALL)
GROUP BY owner
"""
_LIES = """
SELECT b.behaviour, coalesce(b.person, b.sender) AS owner, c.round, c.buyer, c.utility,
       c.truthful_utility, b.value, b.true_value, b.privacy_budget, b.true_privacy_budget,
       b.data_size, b.true_data_size
FROM counterfactual c JOIN bid b ON b.sender = c.sender AND b.round = c.round AND b.buyer = c.buyer
ORDER BY c.utility - c.truthful_utility DESC, c.seq
"""


def sales(run: Path, scenario: dict[str, Any]) -> list[Chart]:
    """Payments to owners against the true worth of the sale to the owner, which real clients keep
    to themselves."""
    payments = sql(run, _SALES.format(count=scenario["owners"]["count"], truth=TRUTH)).to_pylist()
    if not payments:
        return []
    sample = evenly(payments, POINTS)
    by = "behaviour" if scenario["owners"].get("behaviours") else "family"
    series = []
    for name in sorted({row[by] for row in payments}):
        of_name = [row for row in sample if row[by] == name]
        labels = [f"owner {row['owner']}, round {row['round'] + 1}" for row in of_name]
        series.append(Series(name, [[row["value"], row["amount"]] for row in of_name], labels))
    sampling = sampled(len(sample), len(payments), "sales")
    note = f"Below the line somebody is paid less than her privacy is worth to her. {sampling}"
    title, x = "Payments against valuations", "what the sale is truly worth to the owner"
    return [Chart("payments", title, "scatter", x, "payment", series, note.strip(), diagonal=True)]


def privacy(run: Path, scenario: dict[str, Any]) -> list[Chart]:
    """Owners in the order of the privacy that they sold in all rounds."""
    count = scenario["owners"]["count"]
    if (run / "ledger.parquet").exists():
        sold = read_ledger(run).column("privacy_sold").to_numpy()
    else:
        sold = np.zeros(count)
        for row in sql(run, _SOLD.format(count=count)).to_pylist():
            sold[row["owner"]] = row["privacy_sold"]
    order = np.argsort(-sold, kind="stable")
    sellers = order[sold[order] > 0]
    if not len(sellers):
        return []
    sample = evenly([(place + 1, int(owner)) for place, owner in enumerate(sellers)], POINTS)
    points = [[place, float(sold[owner])] for place, owner in sample]
    cap = scenario["owners"].get("lifetime_budget")
    note = f"{len(sellers):,} of {count:,} owners sold something."
    if cap is not None:
        note += f" Lifetime budget: {cap}."
    note = f"{note} {sampled(len(sample), len(sellers), 'owners')}".strip()
    series = Series("privacy sold", points, [f"owner {owner}" for _, owner in sample])
    title = "Privacy sold by owner"
    return [
        Chart(
            "privacy",
            title,
            "line",
            "owners, from who sold most",
            "privacy loss sold in all rounds",
            [series],
            note,
        )
    ]


def lies(run: Path) -> tuple[list[Chart], list[Table]]:
    """Gains of misreports over the truth, by behaviour, if the run has counterfactuals."""
    misreports = sql(run, _LIES).to_pylist()
    if not misreports:
        return [], []
    gain = np.array([row["utility"] - row["truthful_utility"] for row in misreports])
    behaviour, when = (
        np.array([row["behaviour"] for row in misreports]),
        np.array([row["round"] for row in misreports]),
    )
    rows, bars = [], []
    for name in sorted(set(behaviour.tolist())):
        of_name = behaviour == name
        rounds = sorted(set(when[of_name].tolist()))
        sums = np.array([gain[of_name & (when == number)].sum() for number in rounds])
        bids = np.array([float((of_name & (when == number)).sum()) for number in rounds])
        mean = estimate(sums, weights=bids)
        rows.append(
            [
                name,
                int(of_name.sum()),
                mean,
                float((gain[of_name] > 0).mean()),
                float(gain[of_name].max()),
            ]
        )
        bars.append([name, mean.mean, mean.low, mean.high])
    best_rows = misreports[:ROWS]
    best = [
        [
            row["behaviour"], row["owner"], row["round"] + 1, row["truthful_utility"],
            row["utility"], row["utility"] - row["truthful_utility"],
            _times(row["value"], row["true_value"]),
            _times(row["privacy_budget"], row["true_privacy_budget"]),
            _times(row["data_size"], row["true_data_size"]),
        ]
        for row in best_rows
    ]  # fmt: skip
    heads = [
        "behaviour",
        "owner",
        "round",
        "by the truth",
        "by the lie",
        "gain",
        "value told / true",
        "privacy told / true",
        "size told / true",
    ]
    note = (
        "Offers, judged by the owner's true valuation; the truth meets the same other bids and "
        "random numbers."
    )
    cut = f" The {ROWS} best of {len(misreports):,}." if len(misreports) > ROWS else ""
    return [
        Chart(
            "lies",
            "What lies earn",
            "bars",
            "behaviour",
            "gain over the truth, a bid",
            [Series("gain", bars)],
            note,
        )
    ], [
        Table(
            "lies",
            "Lies by behaviour",
            ["behaviour", "bids", "mean gain", "share that gain", "largest gain"],
            rows,
            note,
        ),
        Table(
            "best-lies",
            "The best lies",
            heads,
            best,
            f"Each beside what the truth would have earned.{cut}",
        ),
    ]


def _times(reported: float | None, true: float | None) -> float | None:
    return reported / true if reported is not None and true else None
