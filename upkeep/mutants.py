"""`make mutants`: changes auctions, rules and privacy in small ways; the tests should notice each.

mutmut makes the changes; [tool.mutmut] in pyproject.toml has the files and the tests. `--report`
reads the results of the last run in mutants/. A survivor is not always a gap: docs/testing.md lists
those that change nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

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


def main() -> None:
    if "--report" not in sys.argv:
        env = os.environ | {"OMP_NUM_THREADS": "1"}
        subprocess.run(
            [sys.executable, "-m", "mutmut", "run", "--max-children", "1"],
            cwd=ROOT,
            env=env,
            check=True,
        )
    by_module = verdicts(ROOT / "mutants")
    if not by_module:
        raise SystemExit("there is nothing in mutants/ yet: run 'make mutants'")
    print(table(by_module))
    print("\nSurvivors; 'python -m mutmut show NAME' shows what was changed:")
    for mutants in by_module.values():
        print("\n".join(f"  {name}" for name, verdict in mutants.items() if verdict == "survived"))


if __name__ == "__main__":
    main()
