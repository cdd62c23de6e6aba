"""`make mutants`: small changes to auctions, rules, perturbations and privacy; do tests notice?

mutmut makes the changes; [tool.mutmut] in pyproject.toml has the files and the tests. There are
thousands of mutants and a run takes hours; one that was stopped goes on. `--sample N` runs N
mutants that are drawn at random among all, which is enough for the share that is killed, with an
interval. `--report` reads the results so far in mutants/. A survivor is not always a gap:
docs/testing.md lists those that change nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

from scipy.stats import binomtest

from upkeep.pins import ROOT

VERDICTS = {
    1: "killed",
    3: "killed",
    0: "survived",
    5: "untested",
    33: "untested",
    36: "killed",
    24: "killed",
    -24: "killed",
}
VERDICTS |= {152: "killed", 255: "killed"}  # as 24 and 36: the mutant ran into its time limit
COLUMNS = ("killed", "survived", "untested", "not run")


def verdicts(folder: Path) -> dict[str, dict[str, str]]:
    """The verdict on each mutant of each module."""
    by_module = {}
    for file in sorted(folder.rglob("*.py.meta")):
        codes = json.loads(file.read_text(encoding="utf-8"))["exit_code_by_key"]
        if codes:
            module = str(file.relative_to(folder / "flmarket_sim")).removesuffix(".py.meta")
            by_module[module] = {
                mutant: VERDICTS.get(code, "not run") for mutant, code in codes.items()
            }
    return by_module


def table(by_module: dict[str, dict[str, str]]) -> str:
    rows, total = [], Counter[str]()
    for module, mutants in by_module.items():
        counts = Counter(mutants.values())
        total += counts
        rows.append((module, counts))
    rows.append(("all", total))
    lines = [
        f"| {module} | {sum(c.values())} | "
        + " | ".join(str(c[column]) for column in COLUMNS)
        + " |"
        for module, c in rows
    ]
    return "\n".join(
        [f"| module | mutants | {' | '.join(COLUMNS)} |", "|---|---:|---:|---:|---:|---:|", *lines]
    )


def share_killed(by_module: dict[str, dict[str, str]]) -> str:
    """The share that the tests noticed, of the mutants that were run or that no test reaches."""
    counts = Counter(verdict for mutants in by_module.values() for verdict in mutants.values())
    run = sum(counts[column] for column in COLUMNS[:3])
    if not run:
        return "No mutant was run."
    low, high = binomtest(counts["killed"], run).proportion_ci(method="wilson")
    return (
        f"{counts['killed']:,} of {run:,} mutants were killed: {counts['killed'] / run:.1%}. "
        f"If they are a random sample, it is [{low:.1%}, {high:.1%}] of all (95 %, Wilson)."
    )


def sample(by_module: dict[str, dict[str, str]], count: int, seed: int = 0) -> list[str]:
    """So many mutants, drawn at random among all."""
    names = sorted(name for mutants in by_module.values() for name in mutants)
    return random.Random(seed).sample(names, min(count, len(names)))


def run(*names: str) -> None:
    """Makes the mutants, and runs those of these names, or all that were not run yet."""
    subprocess.run(
        [sys.executable, "-m", "mutmut", "run", "--max-children", "1", *names],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--sample", type=int, metavar="N")
    wanted = parser.parse_args()
    if wanted.sample:
        if not (ROOT / "mutants").exists():
            run("flmarket_sim.auctions.pay_as_bid.*")  # makes all of them, and runs a few
        run(*sample(verdicts(ROOT / "mutants"), wanted.sample))
    elif not wanted.report:
        run()
    by_module = verdicts(ROOT / "mutants")
    if not by_module:
        raise SystemExit("there is nothing in mutants/ yet: run 'make mutants'")
    print(table(by_module))
    print(f"\n{share_killed(by_module)}")
    print("\nSurvivors; 'python -m mutmut show NAME' shows what was changed:")
    for mutants in by_module.values():
        print("\n".join(f"  {name}" for name, verdict in mutants.items() if verdict == "survived"))


if __name__ == "__main__":
    main()
