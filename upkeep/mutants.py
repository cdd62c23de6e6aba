"""`make mutants`: small changes to auctions, aggregation rules and privacy, one at a time; the tests should notice each.

mutmut does it ([tool.mutmut] in pyproject.toml says where and with which tests). `--report` reads what the last run left in mutants/.
A survivor is not always a gap: docs/testing.md says which ones change nothing.
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
VERDICTS |= {
    152: "killed",
    255: "killed",
}  # these and 24, 36: a mutant that runs for ever is noticed
COLUMNS = ("killed", "survived", "untested", "not run")


def verdicts(folder: Path) -> dict[str, dict[str, str]]:
    """Module -> mutant -> what became of it."""
    found = {}
    for file in sorted(folder.rglob("*.py.meta")):
        codes = json.loads(file.read_text(encoding="utf-8"))["exit_code_by_key"]
        if codes:
            module = str(file.relative_to(folder / "flmarket_sim")).removesuffix(".py.meta")
            found[module] = {
                mutant: VERDICTS.get(code, "not run") for mutant, code in codes.items()
            }
    return found


def table(found: dict[str, dict[str, str]]) -> str:
    rows, total = [], Counter[str]()
    for module, mutants in found.items():
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
    found = verdicts(ROOT / "mutants")
    if not found:
        raise SystemExit("there is nothing in mutants/ yet: run 'make mutants'")
    print(table(found))
    print("\nSurvivors; 'python -m mutmut show NAME' shows what was changed:")
    for mutants in found.values():
        print("\n".join(f"  {name}" for name, verdict in mutants.items() if verdict == "survived"))


if __name__ == "__main__":
    main()
