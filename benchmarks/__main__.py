"""Runs all benchmarks and writes benchmarks/results.md.

`python -m benchmarks NAME...` runs some of them and only prints. `--quick` goes to the benchmarks
that have this option (`scale`): smaller sizes, one turn, no figures.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

NAMES = (
    "startup",
    "aggregation",
    "learning_run",
    "local_training",
    "throughput",
    "disk",
    "population",
    "learned",
    "first_best",
    "sweep",
    "worker_memory",
    "crash_safety",
    "kept_models",
    "many_events",
    "verify",
    "workbench",
    "scale",
)
QUICK = ("scale", "workbench")


def main() -> None:
    requested = [name for name in sys.argv[1:] if name != "--quick"]
    quick = "--quick" in sys.argv
    chosen = requested or NAMES
    unknown = set(chosen) - set(NAMES)
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    parts = []
    for name in chosen:
        print(f"== {name}", file=sys.stderr, flush=True)
        # a separate process each, so that memory and caches of one do not affect the next
        options = ["--quick"] if quick and name in QUICK else []
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{name}", *options],
            stdout=subprocess.PIPE,
            text=True,
        )
        if done.returncode:
            sys.exit(f"{name} failed")
        print(done.stdout, flush=True)
        parts.append(done.stdout.strip())
    if not requested and not quick:
        head = f"# Benchmarks\n\nMeasured by `make bench` on {platform.machine()}, "
        head += f"Python {platform.python_version()}; times are the best of several turns, "
        head += "ratios of one run.\n"
        Path(__file__).with_name("results.md").write_text(head + "\n" + "\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
