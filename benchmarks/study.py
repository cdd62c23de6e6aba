"""A study on one worker and on two, and a study that is killed again and again.

`python -m benchmarks.study [KILLS]` runs scenarios/studies/misreport-gain.toml once with each
number of workers, compares every byte, and then kills the study at KILLS random moments (10 by
default) before it lets it finish. Any further argument PATH=VALUE is passed on as --set.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCENARIO = ROOT / "scenarios/studies/misreport-gain.toml"


def command(out: Path, workers: int, settings: list[str]) -> list[str]:
    program = Path(sys.executable).with_name("flmarket")
    options = [part for setting in settings for part in ("--set", setting)]
    where = ["--workers", str(workers), "--out", str(out)]
    return [str(program), "study", str(SCENARIO), *options, *where]


def timed(out: Path, workers: int, settings: list[str]) -> float:
    """Wall seconds of the whole command."""
    began = time.perf_counter()
    subprocess.run(command(out, workers, settings), check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def killed(out: Path, kills: int, seconds: float, settings: list[str]) -> int:
    """Starts the study, kills it at random moments, and lets the last start finish.

    Returns how many starts were really killed before their end.
    """
    moments, hits = random.Random(12), 0
    for _ in range(kills):
        process = subprocess.Popen(
            command(out, 2, settings), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(moments.uniform(0.3, 2.5 * seconds / kills))
        hits += process.poll() is None
        process.kill()
        process.wait()
        if (out / "study.json").exists():
            return hits
    subprocess.run(command(out, 2, settings), check=True, stdout=subprocess.DEVNULL)
    return hits


def main(arguments: list[str]) -> None:
    settings = [argument for argument in arguments if "=" in argument]
    counts = [int(argument) for argument in arguments if "=" not in argument]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        two, one = timed(folder / "two", 2, settings), timed(folder / "one", 1, settings)
        same = files(folder / "one") == files(folder / "two")
        print(f"one worker {one:.1f} s, two workers {two:.1f} s: {one / two:.2f} times")
        print(f"the same bytes: {same}; cores: {os.cpu_count()}, load {os.getloadavg()[0]:.1f}")
        hits = killed(folder / "killed", counts[0] if counts else 10, two, settings)
        again = files(folder / "killed") == files(folder / "one")
        print(f"killed {hits} times, then finished; the same bytes: {again}")
        if not (same and again):
            sys.exit("the bytes differ")


if __name__ == "__main__":
    main(sys.argv[1:])
