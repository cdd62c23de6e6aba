"""The tables of docs/learned-auctions.md: auctions side by side, in both markets of the paper.

Each market is counted in the paper's reading of the error and with whole gradients (PrivUnit).

`python -m docs.numbers --authors DIR` evaluates the auctions and writes docs/numbers/learned.json
and the tables between the marks of the page; `--page` writes the tables from the stored numbers.
Finished tasks are kept in runs/numbers: a stopped command continues there. DIR holds the weights
that the paper's authors published.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path
from typing import Any

from docs import page_numbers
from flmarket_sim.experiments.engine import results_of
from flmarket_sim.experiments.store import FileStore
from flmarket_sim.experiments.worker_processes import Processes
from flmarket_sim.scenario.scenario_file import load_scenario
from flmarket_sim.studies.evaluation import evaluate, evaluation_tasks, scores
from flmarket_sim.studies.study_run import TASKS

HERE = Path(__file__).parent
PAGE, STORED = HERE / "learned-auctions.md", HERE / "numbers" / "learned.json"
KEPT = HERE.parent / "runs" / "numbers"
WHOLE = ("perturbation.name=priv-unit", "aggregation.error=vector")
MARKETS: dict[str, tuple[str, tuple[str, ...]]] = {
    "IID": ("iid", ()),
    "non-IID": ("noniid", ()),
    "IID, PrivUnit": ("iid", WHOLE),
    "non-IID, PrivUnit": ("noniid", WHOLE),
}
PUBLISHED_FILES = {"IID": "dm-reg_opt_nslkdd_iid.pt", "non-IID": "dm-reg_opt_nslkdd_niid.pt"}
PROFILES, PROBED, SEED = 2000, 60, 0
OTHERS = ("all-in-critical", "all-in", "proportional-share")
OURS = ("dm-regretnet", "m-regretnet", "regretnet")
PUBLISHED = "DM-RegretNet, published weights"
MARKS = re.compile(
    r"(<!-- made by: docs\.numbers ([\w, -]+?) -->\n)(?:(?!<!-- ).*\n)*(<!-- end -->)"
)


def measured(market: str, authors: Path, workers: int, store: FileStore) -> list[dict[str, Any]]:
    """The scores of all auctions in one market, with budget factors drawn from [0.1, 2]."""
    part, overrides = MARKETS[market]
    path = HERE.parent / f"scenarios/paper/{part}.toml"
    scenario = load_scenario(path, ["seed=777", *overrides])
    names = {name: f"{name} (ours)" for name in OURS}
    if market in PUBLISHED_FILES:
        names[f"dm-regretnet@{authors / PUBLISHED_FILES[market]}"] = PUBLISHED
    names |= {name: name for name in ("seq-price", *OTHERS)}
    tasks = evaluation_tasks(list(names), scenario, None, PROFILES, "opt-aggr", PROBED, SEED)
    results = results_of(
        tasks,
        evaluate,
        crew=Processes(workers),
        store=store,
        progress=lambda done, total: print(f"\r{market}: {done} of {total}", end="", flush=True),
    )
    print()
    return [
        {"market": market} | score.as_dict() | {"auction": names[score.auction]}
        for score in scores(tasks, results)
    ]


def table(market: str) -> str:
    """The table of one market in Markdown."""
    lines = [
        f"| {market} | error bound | / first-best | IR violation | regret |",
        "|---|---|---|---|---|",
    ]
    for row in page_numbers.rows("learned", market=market):
        error, regret = (
            f"{row[mean]:.{digits}f} [{row[low]:.{digits}f}, {row[high]:.{digits}f}]"
            for mean, low, high, digits in (
                ("error_bound", "error_low", "error_high", 2),
                ("regret", "regret_low", "regret_high", 3),
            )
        )
        ratio, shortfall = f"{row['ratio']:.2f}", f"{row['ir_violation']:.3f}"
        cells = (row["auction"], error, ratio, shortfall, regret)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def page(text: str) -> str:
    return MARKS.sub(lambda mark: f"{mark[1]}{table(mark[2])}\n{mark[3]}", text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--authors", type=Path, help="folder of the authors' published .pt files")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--page", action="store_true", help="only write the stored tables")
    arguments = parser.parse_args()
    if not arguments.page:
        if arguments.authors is None:
            parser.error("--authors DIR is needed: the tables compare with the published weights")
        KEPT.mkdir(parents=True, exist_ok=True)
        with FileStore(KEPT / TASKS) as store:
            folder = arguments.authors.resolve()
            folder = folder / "checkpoints" if (folder / "checkpoints").is_dir() else folder
            made = [
                row
                for market in MARKETS
                for row in measured(market, folder, arguments.workers, store)
            ]
        STORED.parent.mkdir(exist_ok=True)
        STORED.write_text(json.dumps(made, indent=1) + "\n")
    PAGE.write_text(page_numbers.page(page(PAGE.read_text())))
