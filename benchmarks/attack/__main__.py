"""`python -m benchmarks.attack damage`: attacks that anybody can repeat."""

from __future__ import annotations

import argparse
import sys

from .outcome import Outcome, shown_progress

COUNTS = {"damage": 2000}


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
    from . import damage

    progress = shown_progress(options.attack)
    return damage.attack(options.count, options.seed, options.workers, progress, options.only)


if __name__ == "__main__":
    main()
