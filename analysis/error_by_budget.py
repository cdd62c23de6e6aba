"""Question: how much error does each auction leave, at which budget? Makes docs/figures/error_by_budget.{png,svg,csv}.

Run with `make figures`. Draws 2,000 markets from each of the paper's scenarios (no data set needed: sizes follow from the
class counts), lets every auction decide the same ones at the same budgets, and aggregates by exact OptAggr.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

import flmarket_sim as fm
from flmarket_sim.report import figures
from flmarket_sim.studies.study import Plot

ROOT = Path(__file__).parents[1]
FACTORS = np.round(np.arange(0.1, 2.01, 0.1), 1)
MARKETS = 2000
NAMES = (
    "fair-query",
    "posted-price",
    "proportional-share",
    "all-in-critical",
    "pay-as-bid",
    "first-best",
)
TITLES = {"iid": "IID sizes and classes", "noniid": "non-IID"}


def errors(name: str, truth: fm.Profiles, budget: np.ndarray) -> np.ndarray:
    """(K,) error bounds of an auction's purchases, or of the first-best."""
    if name == "first-best":
        return fm.auctions.first_best(truth, budget).error_bound
    outcome = fm.auctions.create(name).decide(truth.bids(), budget, np.random.default_rng(0))
    weights = fm.aggregation.create("opt-aggr").weights(outcome.privacy_loss, truth.data_size)
    return fm.aggregation.error_bound(weights, outcome.privacy_loss, truth.data_size)


def measure() -> list[dict[str, object]]:
    rows = []
    for market in ("iid", "noniid"):
        truth = fm.draw_profiles(
            fm.load_scenario(ROOT / f"scenarios/paper/{market}.toml"), MARKETS, seed=1
        )
        for name in NAMES:
            for factor in FACTORS:
                found = errors(name, truth, factor * truth.total_value())
                valid = found[np.isfinite(found)]
                half = 1.96 * valid.std(ddof=1) / np.sqrt(len(valid))
                rows.append(
                    {
                        "market": market,
                        "mechanism": name,
                        "budget_factor": factor,
                        "mean_error_bound": round(float(valid.mean()), 5),
                        "ci95": round(float(half), 5),
                        "invalid_rate": round(1 - len(valid) / len(found), 5),
                    }
                )
            print(market, name, flush=True)
    return rows


def draw(rows: list[dict[str, object]], target: Path) -> None:
    drawn = []
    for row in rows:
        mean, half = float(row["mean_error_bound"]), float(row["ci95"])
        line = {
            "panel": TITLES[row["market"]],
            "mechanism": row["mechanism"],
            "factor": float(row["budget_factor"]),
        }
        drawn.append(line | {"error": mean, "error_low": mean - half, "error_high": mean + half})
    plot = Plot(
        "factor",
        "error",
        "mechanism",
        "budget / value of everything for sale",
        "mean error bound",
        log=True,
        panel="panel",
    )
    for suffix in (".png", ".svg"):
        figures.draw(drawn, plot, target.with_suffix(suffix))


if __name__ == "__main__":
    table = measure()
    target = ROOT / "docs" / "figures" / "error_by_budget"
    with target.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, table[0].keys())
        writer.writeheader()
        writer.writerows(table)
    draw(table, target)
    print(f"wrote {target.relative_to(ROOT)}.csv, .png and .svg")
