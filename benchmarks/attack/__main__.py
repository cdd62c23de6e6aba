"""`python -m benchmarks.attack damage|markets`: attacks that anybody can repeat."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from .outcome import Outcome, shown_progress

COUNTS = {"damage": 2000, "markets": 100_000}


def main() -> None:
    options = parsed()
    outcome = perform(options)
    print(outcome.as_json() if options.json else outcome.as_text())
    sys.exit(1 if outcome.failures else 0)


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attack", description=__doc__)
    attacks = parser.add_subparsers(dest="attack", required=True)
    for name, count in COUNTS.items():
        one = attacks.add_parser(name)
        one.add_argument("--count", type=int, default=count, help=f"trials (default {count:,})")
        one.add_argument("--seed", type=int, default=0)
        one.add_argument("--workers", type=int, default=2, help="processes (default 2)")
        one.add_argument("--only", type=int, help="the trial with this number alone")
        one.add_argument("--json", action="store_true", help="everything, as JSON")
    return parser.parse_args(arguments)


def perform(options: argparse.Namespace) -> Outcome:
    attack = import_module(f"benchmarks.attack.{options.attack}")
    progress = shown_progress(options.attack)
    return attack.attack(options.count, options.seed, options.workers, progress, options.only)


if __name__ == "__main__":
    main()
