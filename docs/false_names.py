"""The tables of docs/false-names.md: what names and coalitions gain, and what proof against them
costs.

`python -m docs.false_names [PART...]` runs the parts that are named, all by default, and writes
docs/numbers/PART.json and the tables between the marks of the page; `--page` writes the tables from
the stored numbers. Finished tasks are kept in runs/false-names: a stopped command continues there.

    names-gained       scenarios/studies/false-names.toml with the auctions of the page
    coalitions-gained  scenarios/studies/coalition.toml with the same
    single-minded-gained  the same study with single-minded owners
    names-cost         mean errors in the paper's markets, budget factors uniform in [0.1, 2]
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from docs import page_numbers
from flmarket_sim.auctions.all_in_critical import AllInCritical
from flmarket_sim.auctions.clock import Clock
from flmarket_sim.auctions.proportional_share import ProportionalShare
from flmarket_sim.auctions.ranking_value import PRECISION, TEMPERED
from flmarket_sim.experiments.engine import results_of
from flmarket_sim.experiments.store import FileStore
from flmarket_sim.experiments.worker_processes import Processes
from flmarket_sim.report.study_folder import cells_of
from flmarket_sim.scenario.scenario_file import load_scenario
from flmarket_sim.studies.evaluation import evaluate, evaluation_tasks, scores
from flmarket_sim.studies.study_run import TASKS, find_out

HERE = Path(__file__).parent
PAGE, NUMBERS = HERE / "false-names.md", HERE / "numbers"
KEPT = HERE.parent / "runs" / "false-names"
SINGLE_MINDED = "single-minded-gained"
STUDIES = {
    "names-gained": "false-names",
    "coalitions-gained": "coalition",
    SINGLE_MINDED: "coalition",
}
COST = "names-cost"
AUCTIONS = (
    "record-price",
    "record-price@paper-all",
    "clock",
    "seq-price",
    "all-in-critical",
    "proportional-share",
    "posted-price",
)
NO_NEWS = ("record-price@paper-all", "posted-price")  # for single-minded owners
COMPARED = {  # as `flmarket evaluate` names it: on the page
    "record-price": "record-price",
    "record-price@paper-all": "record-price@paper-all",
    "clock": "clock",
    "docs.false_names:TemperedClock": "clock, tempered",
    "all-in-critical": "all-in-critical",
    "docs.false_names:PreciseAllIn": "all-in-critical, precision",
    "proportional-share": "proportional-share",
    "docs.false_names:PreciseShare": "proportional-share, precision",
}
MARKETS = {"IID": "iid", "non-IID": "noniid"}
REGIMES: dict[str, list[str]] = {  # what is counted: overrides of the scenario
    "the paper's error": [],
    "PrivUnit, whole gradients": ["perturbation.name=priv-unit", "aggregation.error=vector"],
}
PROFILES, SEED = 2000, 0
COLUMNS = {
    "names-gained": ("auction", "names", "gain names", "gain lie", "gain both"),
    "coalitions-gained": ("auction", "members", "gain together", "gain alone"),
    SINGLE_MINDED: ("auction", "members", "gain together", "gain alone"),
}
MARKS = re.compile(
    r"(<!-- made by: docs\.false_names ([\w-]+) -->\n)(?:(?!<!-- ).*\n)*(<!-- end -->)"
)


class TemperedClock(Clock):
    """The clock with another unit."""

    def __init__(self) -> None:
        super().__init__(TEMPERED)


class PreciseAllIn(AllInCritical):
    """All-in-critical with another unit."""

    def __init__(self) -> None:
        super().__init__(PRECISION)


class PreciseShare(ProportionalShare):
    """Proportional share with another unit."""

    def __init__(self) -> None:
        super().__init__(PRECISION)


def gained(part: str, store: FileStore, workers: int) -> list[dict[str, Any]]:
    """The rows of a study with the auctions of the page."""
    single_minded = part == SINGLE_MINDED
    overrides = ['owners.families=["step"]', "study.sizes=[2,5]"] if single_minded else []
    listed = json.dumps([name for name in AUCTIONS if not (single_minded and name in NO_NEWS)])
    path = HERE.parent / f"scenarios/studies/{STUDIES[part]}.toml"
    scenario = load_scenario(path, [f"study.auctions={listed}", *overrides])
    return list(find_out(scenario, crew=Processes(workers), store=store).rows)


def costs(store: FileStore, workers: int) -> list[dict[str, Any]]:
    """The scores of all auctions in both markets of the paper, in both readings of the error."""
    made = []
    for regime, overrides in REGIMES.items():
        for market, part in MARKETS.items():
            path = HERE.parent / f"scenarios/paper/{part}.toml"
            scenario = load_scenario(path, ["seed=777", *overrides])
            names = COMPARED | {f"seq-price@paper-{part}": "seq-price"}
            tasks = evaluation_tasks(list(names), scenario, None, PROFILES, "opt-aggr", 0, SEED)
            results = results_of(tasks, evaluate, crew=Processes(workers), store=store)
            made += [
                {"market": market, "regime": regime}
                | score.as_dict()
                | {"auction": names[score.auction]}
                for score in scores(tasks, results)
            ]
            print(f"{regime}, {market}: done", flush=True)
    return made


def cost_table() -> str:
    """Errors in Markdown, a line for each auction and a column for each market."""
    columns = [(regime, market) for regime in REGIMES for market in MARKETS]
    lines = [
        "| auction | " + " | ".join(f"{market}, {regime}" for regime, market in columns) + " |",
        "|---|" + "---|" * len(columns),
    ]
    for auction in (*COMPARED.values(), "seq-price"):
        cells = []
        for regime, market in columns:
            row = page_numbers.rows(COST, auction=auction, regime=regime, market=market)[0]
            digits = 2 if row["error_bound"] < 100 else 0
            error, low, high = (row[key] for key in ("error_bound", "error_low", "error_high"))
            useless = f", {row['invalid_rate']:.1%} invalid" if row["invalid_rate"] else ""
            cells.append(f"{error:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]{useless}")
        lines.append(f"| {auction} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def table(part: str) -> str:
    if part == COST:
        return cost_table()
    rows, heads = cells_of(page_numbers.rows(part)), COLUMNS[part]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(row[h] for h in heads) + " |" for row in rows)])


def page(text: str) -> str:
    """The page, with every marked table made from the stored numbers."""
    return MARKS.sub(lambda mark: f"{mark[1]}{table(mark[2])}\n{mark[3]}", text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *STUDIES, COST], help="all by default")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--page", action="store_true", help="only write the stored tables")
    arguments = parser.parse_args()
    KEPT.mkdir(parents=True, exist_ok=True)
    with FileStore(KEPT / TASKS) as store:
        for part in [] if arguments.page else arguments.parts or [*STUDIES, COST]:
            some = gained(part, store, arguments.workers) if part in STUDIES else None
            rows = costs(store, arguments.workers) if some is None else some
            NUMBERS.joinpath(f"{part}.json").write_text(json.dumps(rows, indent=1) + "\n")
            print(f"{part}: {len(rows)} rows")
    page_numbers._stored.cache_clear()
    if PAGE.exists():
        PAGE.write_text(page_numbers.page(page(PAGE.read_text())))
