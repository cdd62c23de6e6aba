"""Question: how much error does each auction leave at which budget?

Makes docs/figures/error_by_budget.{png,svg,csv}; run it with `make figures`. It is the study of
scenarios/paper/error-bound.toml with auctions that need no training: 500 markets of each kind
(no data set is needed, since sizes follow from class counts), and weights by the exact OptAggr.
"""

from __future__ import annotations

import csv
from pathlib import Path

from flmarket_sim.paper.paper_market import in_panels
from flmarket_sim.paper.reproduction import experiment
from flmarket_sim.report import figures
from flmarket_sim.studies.study_run import find_out

ROOT = Path(__file__).parents[1]
AUCTIONS = ["fair-query", "posted-price", "proportional-share", "all-in-critical", "pay-as-bid"]
COLUMNS = (
    "market",
    "auction",
    "budget_factor",
    "error_bound",
    "error_bound_low",
    "error_bound_high",
    "invalid_rate",
)

if __name__ == "__main__":
    settings = [f"study.auctions={AUCTIONS}", 'study.rules=["opt-aggr"]', "study.profiles=500"]
    scenario = experiment("error-bound", quick=False, overrides=settings)
    finding = find_out(scenario, progress=lambda done, total: print(f"{done} of {total}"))
    target = ROOT / "docs" / "figures" / "error_by_budget"
    with target.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for row in finding.rows:
            numbers = {key: round(row[key], 5) for key in COLUMNS[2:]}
            writer.writerow({"market": row["market"], "auction": row["auction"]} | numbers)
    for suffix in (".png", ".svg"):
        figures.draw(in_panels(finding.rows), finding.plot, target.with_suffix(suffix))
    print(f"wrote {target.relative_to(ROOT)}.csv, .png and .svg")
