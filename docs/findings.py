"""The tables and figures of docs/findings.md and docs/second-best.md.

`python -m docs.findings [NAME...] [--authors DIR]` runs studies of scenarios/studies/. Each study
goes to docs/findings/NAME.png and .json, its table between the marks of the page, and its numbers
into the page's sentences (`docs.page_numbers`). Finished tasks are kept in runs/findings: a stopped
command continues there. --authors names the directory of the weights that the paper's authors
published; two studies measure them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import textwrap
import time
from pathlib import Path
from typing import Any

from docs import page_numbers
from flmarket_sim.auctions.auction_name import AuctionName
from flmarket_sim.experiments.store import FileStore
from flmarket_sim.experiments.worker_processes import Processes
from flmarket_sim.report import figures
from flmarket_sim.report.study_folder import cells_of
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.scenario_file import load_scenario
from flmarket_sim.studies.cheating import HONEST, NO_CHECK
from flmarket_sim.studies.study_run import TASKS, find_out

HERE = Path(__file__).parent
PAGES = (HERE / "findings.md", HERE / "second-best.md", HERE / "cheating.md")
RESULTS = HERE / "findings"
KEPT = HERE.parent / "runs" / "findings"
ONE_IN_TWENTY = 0.05
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
PUBLISHED = {
    "dm-reg_opt_nslkdd_iid.pt": "dm-regretnet",
    "8-reg_nslkdd_iid.pt": "m-regretnet",
    "reg_nslkdd_iid.pt": "regretnet",
}
# Name on the page: scenario, and whether it measures the weights that the authors published.
STUDIES: dict[str, tuple[str, bool]] = {
    "single-minded": ("single-minded", False),
    "misreport-gain": ("misreport-gain", False),
    "misreport-gain-published": ("misreport-gain", True),
    "published-regret": ("published-regret", False),
    "published-regret-published": ("published-regret", True),
    "rest-point": ("rest-point", False),
    "strategic-share": ("strategic-share", False),
    "learners": ("learners", False),
    "coalition": ("coalition", False),
    "false-names": ("false-names", False),
    "arbitrage": ("arbitrage", False),
    "model-quality": ("model-quality", False),
    "bank-quality": ("bank-quality", False),
    "first-market": ("first-market", False),
    "regimes": ("regimes", False),
    "buyers-curve": ("buyers-curve", False),
    "bargains": ("bargains", False),
    "second-best": ("second-best", False),
    "second-best-noniid": ("second-best-noniid", False),
    "cheating": ("cheating", False),
    "detection": ("detection", False),
    "cheat-share": ("cheat-share", False),
    "poisoned-markets": ("poisoned-markets", False),
}
# The columns of wide tables that the page has; the study's own files have all of them.
COLUMNS: dict[str, tuple[str, ...]] = {
    "rest-point": (
        "auction",
        "rest",
        "cycle",
        "unsettled",
        "liars",
        "error truth",
        "bound of data end",
        "error ratio at rest",
        "error ratio",
    ),
    "strategic-share": (
        "auction",
        "share",
        "error bound",
        "bound of data",
        "true error",
        "accuracy",
        "spent share",
        "surplus share",
    ),
    "learners": (
        "auction",
        "behaviour",
        "asked factor",
        "budget share",
        "advantage",
        "bound of data",
    ),
    "published-regret": (
        "auction",
        "measured by",
        "markets",
        "gain over cost",
        "gain over cost median",
        "gain over cost trimmed",
    ),
    "coalition": ("auction", "members", "gain together", "gain together median", "gain alone"),
    "false-names": ("auction", "names", "gain names", "gain lie", "gain both", "gain both median"),
    "arbitrage": ("auction", "owners", "purchases", "budget ratio", "spending ratio"),
    "model-quality": (
        "market",
        "pipeline",
        "accuracy",
        "balanced accuracy",
        "coordinate bound",
        "vector bound",
        "true error",
        "true over vector",
    ),
    "poisoned-markets": (
        "market",
        "pipeline",
        "accuracy",
        "market gain",
        "balanced accuracy",
        "true error",
    ),
    "bank-quality": ("pipeline", "accuracy", "balanced accuracy", "vector bound", "true error"),
    "first-market": ("pipeline", "accuracy", "vector bound", "true error", "privacy sold"),
    "regimes": ("kappa", "auction", "rule", "over everything median", "invalid"),
    "buyers-curve": ("pipeline", "auction", "budget factor", "accuracy", "spent"),
    "bargains": ("kappa", "group", "sold share", "money share", "records share"),
}


def scenario_of(name: str, authors: Path | None) -> Scenario | None:
    """The scenario of a study; None if it needs the published weights, and they are not there."""
    scenario, published = STUDIES[name]
    settings: list[str] = []
    if published:
        if authors is None:
            return None
        files = [
            (file, mechanism)
            for file, mechanism in PUBLISHED.items()
            if scenario == "published-regret" or "dm" in mechanism
        ]
        listed = ", ".join(json.dumps(f"{mechanism}@{authors / file}") for file, mechanism in files)
        settings = [f"study.auctions=[{listed}]"]
    return load_scenario(HERE.parent / f"scenarios/studies/{scenario}.toml", settings)


def run(name: str, authors: Path | None, store: FileStore, workers: int) -> None:
    """Runs a study, and stores its figure, its rows and its sentences."""
    scenario = scenario_of(name, authors)
    if scenario is None:
        print(f"{name}: skipped, it needs --authors DIR")
        return
    began = time.perf_counter()
    finding = find_out(
        scenario,
        crew=Processes(workers),
        store=store,
        progress=lambda done, total: print(
            f"\r{name}: {done} of {total} tasks", end="", flush=True
        ),
    )
    seconds = round(time.perf_counter() - began)
    rows, drawn = (
        [row | _labelled(row) for row in unnamed]
        for unnamed in (finding.rows, finding.drawn or finding.rows)
    )
    RESULTS.mkdir(exist_ok=True)
    figures.draw(drawn, finding.plot, RESULTS / f"{name}.png")
    sentences = [re.sub(r"@\S*/([^/\s]+)\.pt", r"@\1", each) for each in finding.sentences]
    result = {"sentences": sentences, "intervals": finding.intervals}
    result["rows"] = [{key: _rounded(value) for key, value in row.items()} for row in rows]
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    print(f"\r{name}: {seconds} s                    ")


def _labelled(row: dict[str, Any]) -> dict[str, str]:
    """The auction of a row without the path of its weights."""
    return {"auction": AuctionName.parse(row["auction"]).label} if "auction" in row else {}


def _rounded(value: Any) -> Any:
    """Six significant digits; a number that is not finite has no place in JSON."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else None


def by_budget(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """A row for each auction, a column for each budget factor.

    A cell has gain / cost with its interval, and the share of owners who gain more than 1 %.
    """
    wide: dict[str, dict[str, str]] = {}
    for row in rows:
        cell = f"{row['gain over cost']}; {float(row['share gaining'].split()[0]):.0%}"
        wide.setdefault(row["auction"], {"auction": row["auction"]})[
            f"budget {row['budget factor']}"
        ] = cell
    return list(wide.values())


def by_best_cheat(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """A row for each auction and check, with the cheat that gains most at each privacy loss.

    A cell has the cheat and its gain with its interval.
    """
    best: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in rows:
        key = row["auction"], row["check"], row["privacy loss"]
        if key not in best or _first(row["gain"]) > _first(best[key]["gain"]):
            best[key] = row
    wide: dict[tuple[str, str], dict[str, str]] = {}
    for (auction, check, loss), row in best.items():
        cells = wide.setdefault((auction, check), {"auction": auction, "check": check})
        numbers = [f"{float(number):.2f}" for number in NUMBER.findall(row["gain"])]
        ends = f" [{', '.join(numbers[1:])}]" if len(numbers) > 1 else ""
        cells[f"e = {float(loss):g}"] = f"{row['cheat']} {numbers[0] if numbers else ''}{ends}"
    return list(wide.values())


def by_price(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """A row for each auction and check, with the pay of honest owners at each privacy loss.

    It is over that without a check, if nobody cheats, with its interval.
    """
    wide: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        if row["cheat"] == HONEST and row["check"] != NO_CHECK:
            key = row["auction"], row["check"]
            cells = wide.setdefault(key, {"auction": key[0], "check": key[1]})
            mean, *ends = (f"{float(number):.2f}" for number in NUMBER.findall(row["honest pay"]))
            interval = f" [{', '.join(ends)}]" if ends else ""
            cells[f"e = {float(row['privacy loss']):g}"] = mean + interval
    return list(wide.values())


def by_share(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """A row for each cheat and pipeline, with the accuracy at each share of cheats.

    The last column has the true error over that without cheats, at the largest share.
    """
    wide: dict[tuple[str, str], dict[str, str]] = {}
    cheats = list(dict.fromkeys(row["cheat"] for row in rows))
    for row in sorted(rows, key=lambda row: (cheats.index(row["cheat"]), float(row["share"]))):
        key = row["cheat"], row["pipeline"]
        cells = wide.setdefault(key, {"cheat": key[0], "pipeline": key[1]})
        cells.pop("error then", None)
        for head, column in (
            (f"{float(row['share']):.0%}", "accuracy"),
            ("error then", "error ratio"),
        ):
            mean, low, high = (float(number) for number in NUMBER.findall(row[column]))
            cells[head] = f"{mean:.2f} [{low:.2f}, {high:.2f}]"
    return list(wide.values())


def by_check(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """A row for each market and privacy loss, with the power of each check, in percent.

    It is the power where a check accuses one honest message in twenty, with its interval.
    """
    wide: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        if float(row["false accused"]) != ONE_IN_TWENTY:
            continue
        market, loss = row["market"], f"{float(row['privacy loss']):g}"
        cells = wide.setdefault((market, loss), {"market": market, "e": loss})
        cells["no test"] = f"{100 * float(row['bound']):.0f}"
        mean, low, high = (100 * float(number) for number in NUMBER.findall(row["caught"]))
        cells[row["check"]] = f"{mean:.0f} [{low:.0f}, {high:.0f}]"
    return list(wide.values())


def _first(cell: str) -> float:
    """The mean of an estimate; nothing is the least."""
    try:
        return float(cell.split()[0])
    except (ValueError, IndexError):
        return -math.inf


def by_range(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """A row for each auction at each kappa, with the error over the floor by range of factors.

    The interval is of all factors together.
    """
    wide: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        key = row["kappa"], row["auction"]
        if key not in wide:
            first = ("kappa", "auction", "error bound", "over floor")
            wide[key] = {head: row[head] for head in first}
        else:
            wide[key][row["budget factor"]] = row["over floor"].split()[0]
    return list(wide.values())


def table(name: str, view: str = "") -> str:
    """A study's rows in Markdown, and what its intervals are of.

    The view `price` has the price of checking in place of the best cheats.
    """
    result = json.loads((RESULTS / f"{name}.json").read_text())
    rows = cells_of(result["rows"])
    if name.startswith("learners"):  # the last block of rounds of each
        last = {(row["auction"], row["behaviour"]): row for row in rows}
        rows = list(last.values())
    if "share gaining" in rows[0]:
        rows = by_budget(rows)
    if "over floor" in rows[0]:
        rows = by_range(rows)
    if view == "price":
        rows = by_price(rows)
    elif "cheat" in rows[0]:
        rows = by_best_cheat(rows) if "check" in rows[0] else by_share(rows)
    if "bound" in rows[0] and "check" in rows[0]:
        rows = by_check(rows)
    heads = tuple(head for head in COLUMNS.get(STUDIES[name][0], tuple(rows[0])) if head in rows[0])
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(row[head] for head in heads) + " |" for row in rows]
    return "\n".join(lines) + "\n\n" + textwrap.fill(result["intervals"], 100)


def page(text: str) -> str:
    """The page, with every marked table made from the stored results."""
    marks = re.compile(
        r"(<!-- made by: docs\.findings ([\w-]+)(?:, (\w+))? -->\n)(?:(?!<!-- ).*\n)*(<!-- end -->)"
    )
    return marks.sub(lambda mark: f"{mark[1]}{table(mark[2], mark[3] or '')}\n{mark[4]}", text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *STUDIES], help="studies; all by default")
    parser.add_argument(
        "--authors", type=Path, help="directory of the authors' published .pt files"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--page", action="store_true", help="only put the stored tables into the page"
    )
    arguments = parser.parse_args()
    authors = None if arguments.authors is None else arguments.authors.resolve()
    if authors is not None and (authors / "checkpoints").is_dir():
        authors = authors / "checkpoints"
    KEPT.mkdir(parents=True, exist_ok=True)
    with FileStore(KEPT / TASKS) as store:
        for name in [] if arguments.page else arguments.names or STUDIES:
            run(name, authors, store, arguments.workers)
    for path in PAGES:
        path.write_text(page(path.read_text()))
        path.write_text(page_numbers.page(path.read_text()))
