"""`make mutants`: small changes to auctions, rules, perturbations and privacy; do tests notice?

mutmut makes the changes; [tool.mutmut] in pyproject.toml has the files and the tests. The tests are
played once, to see which functions each of them reaches, and a test file is played again when it
has changed. Then each mutant meets the tests that reach it (upkeep/mutant_trials.py). There are
thousands of mutants and a run takes hours; one that was stopped goes on, and tries survivors again
if tests have changed. `--sample N` runs N mutants that are drawn at random among all, in random
order, or the first of them if `--minutes M` are over; that is enough for the share that is killed,
with an interval. `--report` reads the results so far in mutants/. A survivor is not always a gap:
docs/testing.md lists those that change nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

from scipy.stats import binomtest

from upkeep.pins import ROOT

COLUMNS = ("killed", "survived", "untested", "not run")
VERDICTS = {1: "killed", 0: "survived", 33: "untested"}
VERDICTS |= {-9: "killed", -14: "killed", -24: "killed"}  # the mutant ran into its time limit
FOLDER = ROOT / "mutants"
REACH = FOLDER / "reach.json"
MEASURED = FOLDER / "measured.json"
ALL = FOLDER / "verdicts.jsonl"
MAKE = """
from mutmut.__main__ import create_mutants
from mutmut.utils.file_utils import copy_also_copy_files, copy_src_dir
copy_src_dir()
copy_also_copy_files()
create_mutants(1)
"""


def make() -> None:
    """Makes the mutants of all files that have changed since the last time."""
    FOLDER.mkdir(exist_ok=True)
    shutil.rmtree(FOLDER / "tests", ignore_errors=True)  # a test that is gone is not played
    subprocess.run([sys.executable, "-c", MAKE], cwd=ROOT, check=True, stdout=sys.stderr)


def made() -> dict[str, list[str]]:
    """The mutants of each module."""
    by_module = {}
    for file in sorted(FOLDER.rglob("*.py.meta")):
        mutants = list(json.loads(file.read_text(encoding="utf-8"))["exit_code_by_key"])
        if mutants:
            module = file.relative_to(FOLDER / "flmarket_sim").as_posix()
            by_module[module.removesuffix(".py.meta")] = mutants
    return by_module


def pytest(*tests: str, **variables: Path) -> None:
    """Plays the tests in the copy of the repository that has the mutants."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    options = settings["tool"]["mutmut"]["pytest_add_cli_args"]
    command = [sys.executable, "-m", "pytest", "-p", "upkeep.mutant_trials", "-p", "no:xdist", "-s"]
    subprocess.run(
        [*command, "--tb=short", *options, *tests],
        cwd=FOLDER,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | {k: str(v) for k, v in variables.items()},
        check=True,
        stdout=sys.stderr,
    )


def measure() -> None:
    """Writes down which functions each test reaches, where that may have changed."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "mutmut"
    ]
    selection, options = (settings["pytest_add_cli_args" + end] for end in ("_test_selection", ""))
    ignore = "--ignore="
    ignored = [ROOT / o.removeprefix(ignore) for o in options if o.startswith(ignore)]
    files = sorted(
        file
        for chosen in selection
        for file in ([ROOT / chosen] if chosen.endswith(".py") else (ROOT / chosen).rglob("*.py"))
        if file.name.startswith("test_") and not any(map(file.is_relative_to, ignored))
    )
    now = {file.relative_to(ROOT).as_posix(): _hash(file, *_beside(file)) for file in files}
    now["package"] = _hash(*sorted((ROOT / "flmarket_sim").rglob("*.py")))
    known = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    if known.get("package") != now["package"]:
        known = {}
        REACH.unlink(missing_ok=True)
        ALL.unlink(missing_ok=True)  # the same name may stand for another change now
    changed = [name for name in now if now[name] != known.get(name) and name != "package"]
    if REACH.exists():
        reach = json.loads(REACH.read_text())
        stay = now.keys() - set(changed)
        for kept in reach.values():
            for test in [test for test in kept if test.partition("::")[0] not in stay]:
                del kept[test]
        REACH.write_text(json.dumps(reach))
    if changed:
        pytest(*changed, MUTANTS_REACH=REACH)
        kept = [mutant for mutant, verdict in read(ALL).items() if verdict == "killed"]
        ALL.write_text("".join(json.dumps([mutant, 1]) + "\n" for mutant in kept))
    MEASURED.write_text(json.dumps(now))


def _beside(test: Path) -> list[Path]:
    """What tests of a folder share."""
    return sorted(file for file in test.parent.glob("*.py") if not file.name.startswith("test_"))


def _hash(*files: Path) -> str:
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def trials(mutants: list[str], verdicts: Path, minutes: float) -> None:
    """Tries the mutants in this order until the minutes are over."""
    orders = json.loads(REACH.read_text())
    orders |= {"mutants": mutants, "verdicts": str(verdicts), "minutes": minutes}
    file = FOLDER / "orders.json"
    file.write_text(json.dumps(orders))
    pytest(*sorted({test.partition("::")[0] for test in orders["functions"]}), MUTANTS_TRIALS=file)


def read(file: Path) -> dict[str, str]:
    """The verdicts that were written so far; the last one on each mutant counts."""
    if not file.exists():
        return {}
    codes = dict(json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    return {mutant: VERDICTS.get(code, "killed") for mutant, code in codes.items()}


def table(by_module: dict[str, list[str]], verdicts: dict[str, str]) -> str:
    rows = {
        module: Counter(verdicts.get(mutant, "not run") for mutant in mutants)
        for module, mutants in by_module.items()
    }
    rows["all"] = sum(rows.values(), Counter[str]())
    lines = [f"| module | mutants | {' | '.join(COLUMNS)} |", "|---|---:|---:|---:|---:|---:|"]
    for module, counts in rows.items():
        numbers = (counts.total(), *(counts[column] for column in COLUMNS))
        lines.append(f"| {module} | " + " | ".join(map(str, numbers)) + " |")
    return "\n".join(lines)


def share_killed(verdicts: dict[str, str]) -> str:
    """The share that the tests noticed, of the mutants that were run or that no test reaches."""
    if not verdicts:
        return "No mutant was run."
    killed = Counter(verdicts.values())["killed"]
    low, high = binomtest(killed, len(verdicts)).proportion_ci(method="wilson")
    return (
        f"{killed:,} of {len(verdicts):,} mutants were killed: {killed / len(verdicts):.1%}. "
        f"If they are a random sample, it is [{low:.1%}, {high:.1%}] of all (95 %, Wilson)."
    )


def sample(by_module: dict[str, list[str]], count: int, seed: int = 0) -> list[str]:
    """So many mutants, drawn at random among all, in random order."""
    names = sorted(name for mutants in by_module.values() for name in mutants)
    return random.Random(seed).sample(names, min(count, len(names)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", action="store_true", help="show what is in mutants/")
    parser.add_argument("--sample", type=int, metavar="N", help="mutants drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many")
    wanted = parser.parse_args()
    verdicts = FOLDER / f"sample-{wanted.seed}.jsonl" if wanted.sample else ALL
    if not wanted.report:
        make()
        measure()
        if wanted.sample:
            verdicts.unlink(missing_ok=True)
            mutants = sample(made(), wanted.sample, wanted.seed)
        else:
            done = read(verdicts)
            mutants = [name for names in made().values() for name in names if name not in done]
        trials(mutants, verdicts, wanted.minutes)
    by_module, found = made(), read(verdicts)
    if not found:
        raise SystemExit("there is nothing in mutants/ yet: run 'make mutants'")
    if wanted.sample:
        by_module = {
            module: drawn
            for module, names in by_module.items()
            if (drawn := [name for name in names if name in found])
        }
    print(table(by_module, found))
    print(f"\n{share_killed(found)}")
    for verdict in ("survived", "untested"):
        print(f"\nMutants that are {verdict}; 'python -m mutmut show NAME' shows the change:")
        print("\n".join(f"  {name}" for name in sorted(found) if found[name] == verdict))


if __name__ == "__main__":
    main()
