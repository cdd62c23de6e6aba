"""How long short commands take, from the shell's point of view: most of it is imports."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.timing import best_of

REPEATS = 10
COMMAND = [sys.executable, "-c", "from flmarket_sim.cli import main; main()"]


def main() -> None:
    folder = Path(tempfile.mkdtemp())

    def python() -> None:
        subprocess.run([sys.executable, "-c", "pass"], check=True)

    def show_help() -> None:
        subprocess.run([*COMMAND, "--help"], check=True, stdout=subprocess.DEVNULL)

    def run() -> None:
        subprocess.run(
            [*COMMAND, "run", "quickstart", "--out", folder / "run", "--json"],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        shutil.rmtree(folder / "run")

    run()  # the first run of a machine also prepares the data set
    names = ("`python -c pass`", "`flmarket --help`", "`flmarket run quickstart`")
    times = best_of(REPEATS, python, show_help, run)
    shutil.rmtree(folder)
    print(f"## Start of a command, best of {REPEATS}\n\n| command | seconds |\n|---|---|")
    for name, seconds in zip(names, times, strict=True):
        print(f"| {name} | {seconds:.2f} |")


if __name__ == "__main__":
    main()
