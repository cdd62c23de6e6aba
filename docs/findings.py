"""The tables and figures of docs/findings.md.

`python -m docs.findings [NAME...] [--authors DIR]` runs studies of scenarios/studies/. Each study
goes to docs/findings/NAME.png and .json, and its table between the marks of the page. --authors
names the directory of the weights that the paper's authors published; two studies measure them.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

from flmarket_sim.paper.published_files import located
from flmarket_sim.report.study_folder import cells_of

HERE = Path(__file__).parent
PAGE, RESULTS = HERE / "findings.md", HERE / "findings"
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
        "bound of data rest",
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
    "arbitrage": ("auction", "owners", "purchases", "budget ratio", "spending ratio"),
}


def run(name: str, authors: Path | None) -> None:
    """Runs a study, and stores its figure, its rows for people and its sentences."""
    scenario, published = STUDIES[name]
    settings: list[str] = []
    if published:
        if authors is None:
            print(f"{name}: skipped, it needs --authors DIR")
            return
        files = [
            (file, mechanism)
            for file, mechanism in PUBLISHED.items()
            if scenario == "published-regret" or "dm" in mechanism
        ]
        listed = ", ".join(
            json.dumps(f"{mechanism}@{located(authors, file) or authors / file}")
            for file, mechanism in files
        )
        settings = ["--set", f"study.auctions=[{listed}]"]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        command = [
            str(Path(sys.executable).with_name("flmarket")),
            "study",
            f"scenarios/studies/{scenario}.toml",
            *settings,
        ]
        print(f"{name} ...", flush=True)
        began = time.perf_counter()
        subprocess.run(
            [*command, "--out", str(out)], check=True, cwd=HERE.parent, stdout=subprocess.DEVNULL
        )
        seconds = round(time.perf_counter() - began, 1)
        facts = json.loads((out / "study.json").read_text())
        rows = cells_of(pq.read_table(out / "rows.parquet").to_pylist())
        RESULTS.mkdir(exist_ok=True)
        shutil.copy(out / "figure.png", RESULTS / f"{name}.png")
        named = [re.sub(r"@\S*/([^/\s]+)\.pt", r"@\1", sentence) for sentence in facts["sentences"]]
        result = {"seconds": seconds, "sentences": named, "rows": rows}
        (RESULTS / f"{name}.json").write_text(
            json.dumps(result, indent=1, ensure_ascii=False) + "\n"
        )
        print(f"{name}: {seconds} s")


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


def table(name: str) -> str:
    """A study's rows in Markdown, with its seconds below."""
    result = json.loads((RESULTS / f"{name}.json").read_text())
    rows = result["rows"]
    if name.startswith("learners"):  # the last block of rounds of each
        last = {(row["auction"], row["behaviour"]): row for row in rows}
        rows = list(last.values())
    if "share gaining" in rows[0]:
        rows = by_budget(rows)
    heads = COLUMNS.get(STUDIES[name][0], tuple(rows[0]))
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(row[head] for head in heads) + " |" for row in rows]
    return "\n".join(lines) + f"\n\n({result['seconds']:.0f} s)"


def page(text: str) -> str:
    """The page, with every marked table made from the stored results."""
    marks = re.compile(
        r"(<!-- made by docs\.findings: ([\w-]+) -->\n)(?:(?!<!-- ).*\n)*(<!-- end -->)"
    )
    return marks.sub(lambda mark: f"{mark[1]}{table(mark[2])}\n{mark[3]}", text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *STUDIES], help="studies; all by default")
    parser.add_argument(
        "--authors", type=Path, help="directory of the authors' published .pt files"
    )
    parser.add_argument(
        "--page", action="store_true", help="only put the stored tables into the page"
    )
    arguments = parser.parse_args()
    for name in [] if arguments.page else arguments.names or STUDIES:
        run(name, None if arguments.authors is None else arguments.authors.resolve())
    if PAGE.exists():
        PAGE.write_text(page(PAGE.read_text()))
