"""`make coverage`: the whole suite under coverage, with child processes; lines covered by room.

The command fails if a core room is below LEAST. `--report` reads the data of the last run instead
of running the suite again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict

from upkeep.pins import ROOT

LEAST = 90.0  # % of lines
CORE = (
    "aggregation", "auctions", "eventlog", "experiments", "learning", "market", "owners", "paper",
    "plugins", "privacy", "scenario", "storage", "strategy", "studies", "sweep", "testing",
    "training", "errors", "randomness", "statistics",
)  # fmt: skip
DATA = ROOT / ".coverage"


def measure() -> None:
    DATA.mkdir(exist_ok=True)
    for old in DATA.iterdir():
        old.unlink()
    env = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    for words in (["run", "-m", "pytest"], ["combine", "-q"]):
        subprocess.run([sys.executable, "-m", "coverage", *words], cwd=ROOT, env=env, check=True)


def by_room() -> dict[str, tuple[int, int]]:
    """For each room the lines that are covered, and all lines."""
    out = DATA / "lines.json"
    words = ["json", "-q", "-o", str(out)]
    subprocess.run([sys.executable, "-m", "coverage", *words], cwd=ROOT, check=True)
    rooms: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for file, counts in json.loads(out.read_text(encoding="utf-8"))["files"].items():
        room = file.replace("\\", "/").split("/")[1].removesuffix(".py")
        had, lines = rooms[room]
        rooms[room] = (
            had + counts["summary"]["covered_lines"],
            lines + counts["summary"]["num_statements"],
        )
    return dict(rooms)


def main() -> None:
    if "--report" not in sys.argv:
        measure()
    low = []
    print("| room | lines | covered |\n|---|---:|---:|")
    for room, (covered, lines) in sorted(by_room().items()):
        share = 100 * covered / lines if lines else 100.0
        print(f"| {room}{'' if room in CORE else ' (not core)'} | {lines} | {share:.1f} % |")
        if room in CORE and share < LEAST:
            low.append(f"{room} {share:.1f} %")
    if low:
        raise SystemExit(f"below {LEAST:g} % of lines: {', '.join(low)}")


if __name__ == "__main__":
    main()
