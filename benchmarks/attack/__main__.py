"""`python -m benchmarks.attack damage|faults|markets|load`: attacks that anybody can repeat.

The exit code is 1 if anything bad was found; every sort of failure comes with the command that
repeats it alone.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module

from .outcome import Outcome, shown_progress

ATTACKS = {  # name: how many trials, and what a trial is
    "damage": (2000, "a result is damaged, and every reader reads it"),
    "faults": (1000, "the disk fails at one file operation of a run, sweep, study or training"),
    "markets": (100_000, "a market of extreme numbers meets every auction and rule"),
}


def main() -> None:
    options = parsed()
    outcome = perform(options)
    print(outcome.as_json() if options.json else outcome.as_text())
    sys.exit(1 if outcome.failures else 0)


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attack", description=__doc__)
    attacks = parser.add_subparsers(dest="attack", required=True)
    for name, (count, what) in ATTACKS.items():
        one = attacks.add_parser(name, help=what, description=f"A trial: {what}.")
        one.add_argument("--count", type=int, default=count, help=f"trials (default {count:,})")
        one.add_argument("--seed", type=int, default=0)
        one.add_argument("--workers", type=int, default=2, help="processes (default 2)")
        one.add_argument("--only", type=int, metavar="INDEX", help="this trial (or batch) alone")
    what = "tests beside busy loops, several times in a row"
    load = attacks.add_parser("load", help=what, description=what)
    load.add_argument("paths", nargs="+", help="what pytest takes: files, folders, options")
    load.add_argument("--loops", type=int, default=4, help="busy loops (default 4)")
    load.add_argument("--times", type=int, default=3, help="turns (default 3)")
    for one in attacks.choices.values():
        one.add_argument("--json", action="store_true", help="everything, as JSON")
    return parser.parse_args(arguments)


def perform(options: argparse.Namespace) -> Outcome:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy and torch are imported
    module = import_module(f"benchmarks.attack.{options.attack}")
    progress = shown_progress(options.attack)
    if options.attack == "load":
        return module.attack(options.paths, options.loops, options.times, progress)
    return module.attack(options.count, options.seed, options.workers, progress, only=options.only)


if __name__ == "__main__":
    main()
