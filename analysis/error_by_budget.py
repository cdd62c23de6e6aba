"""Question: how much error does each auction leave, at which budget? Makes docs/figures/error_by_budget.{png,svg,csv}.

Run with `make figures`. Draws 2,000 markets from each of the paper's scenarios (no data set needed: sizes follow from the
class counts), lets every auction decide the same ones at the same budgets, and aggregates by exact OptAggr.
"""

from __future__ import annotations

import csv
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import flmarket_sim as fm

plt.switch_backend("Agg")
plt.rcParams["svg.hashsalt"] = "flmarket"

ROOT = Path(__file__).parents[1]
FACTORS = np.round(np.arange(0.1, 2.01, 0.1), 1)
MARKETS = 2000
STYLE = {  # Okabe and Ito's colours, safe for the colour-blind, and a marker each
    "fair-query": ("#999999", "x"),
    "posted-price": ("#CC79A7", "v"),
    "proportional-share": ("#E69F00", "s"),
    "all-in-critical": ("#0072B2", "o"),
    "pay-as-bid": ("#D55E00", "^"),
    "first-best": ("#000000", ""),
}


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
        truth = fm.draw_profiles(fm.load_scenario(ROOT / f"scenarios/paper/{market}.toml"), MARKETS, seed=1)
        for name in STYLE:
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


def draw(rows: list[dict[str, object]]) -> plt.Figure:
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    titles = {"iid": "IID sizes and classes", "noniid": "non-IID"}
    for axis, market in zip(axes, titles, strict=True):
        for name, (colour, marker) in STYLE.items():
            mine = [row for row in rows if row["market"] == market and row["mechanism"] == name]
            x = [row["budget_factor"] for row in mine]
            y = np.array([row["mean_error_bound"] for row in mine])
            band = np.array([row["ci95"] for row in mine])
            line = "--" if name == "first-best" else "-"
            axis.plot(x, y, line, color=colour, marker=marker, markersize=4, linewidth=1.5, label=name)
            axis.fill_between(x, y - band, y + band, color=colour, alpha=0.15, linewidth=0)
        axis.set(title=titles[market], xlabel="budget / value of everything for sale", yscale="log")
        axis.grid(alpha=0.3, which="both", linewidth=0.5)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("mean error bound")
    axes[0].set_yticks([1, 2, 5, 10, 20, 50], labels=["1", "2", "5", "10", "20", "50"])
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


if __name__ == "__main__":
    table = measure()
    target = ROOT / "docs" / "figures" / "error_by_budget"
    with target.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, table[0].keys())
        writer.writeheader()
        writer.writerows(table)
    picture = draw(table)
    picture.savefig(target.with_suffix(".png"), dpi=150)
    picture.savefig(target.with_suffix(".svg"), metadata={"Date": None})
    print(f"wrote {target.relative_to(ROOT)}.csv, .png and .svg")
