"""`python -m tests.fuzz READER... [--inputs N] [--seed S]`: damaged and hostile files, and what the readers make of them.

With --guided, atheris looks for inputs that reach new code (`pip install -r requirements-fuzz.txt`).
Exit 1 if anything but a clear refusal came out; such inputs are kept in --keep.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from .campaign import Failure, Tally, generator, run
from .folder_readers import LogReader, ModelReader, ProbeReader, ReportReader, SweepFolderReader
from .text_readers import ScenarioReader, SweepReader
from .unfinished import UnfinishedReader
from .weight_readers import PtReader, SafetensorsReader

READERS = {
    reader.name: reader
    for reader in (
        ScenarioReader, SweepReader, SafetensorsReader, PtReader, LogReader, ModelReader, ReportReader, SweepFolderReader, ProbeReader,
        UnfinishedReader,
    )
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "readers",
        nargs="+",
        metavar="READER",
        choices=[*READERS, "all"],
        help=f"{', '.join(READERS)}, or all",
    )
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--keep", type=Path, default=Path("fuzz-failures"), help="folder for inputs that fail"
    )
    parser.add_argument(
        "--guided", action="store_true", help="inputs found by atheris, by coverage"
    )
    options = parser.parse_args()
    failed = False
    for name in list(READERS) if "all" in options.readers else options.readers:
        if options.guided:
            from . import guided

            failed |= guided.run(READERS[name], options.inputs, options.seed, options.keep)
            continue
        began = time.perf_counter()
        tally = run(
            READERS[name],
            options.inputs,
            options.seed,
            lambda tally, name=name: show(name, tally, "\r"),
        )
        show(name, tally, "\r")
        print()
        print(report(name, tally, time.perf_counter() - began), flush=True)
        keep(name, tally, options.seed, options.keep)
        failed |= bool(tally.failures)
    sys.exit(1 if failed else 0)


def show(name: str, tally: Tally, end: str) -> None:
    if sys.stderr.isatty():
        print(
            f"{name}: {tally.inputs:,} inputs, {len(tally.failures)} failures",
            end=end,
            file=sys.stderr,
            flush=True,
        )


def report(name: str, tally: Tally, seconds: float) -> str:
    refused = (
        ", ".join(f"{kind} {count:,}" for kind, count in tally.refused.most_common()) or "none"
    )
    slowest, index = tally.slowest
    lines = [
        f"{name}: {tally.inputs:,} inputs in {seconds:.0f} s: {tally.valid:,} valid, {tally.refused.total():,} refused ({refused}), "
        f"{len(tally.failures):,} failures; slowest {1000 * slowest:.0f} ms (input {index}), {tally.memory / 1024:.0f} MB above the start"
    ]
    alike: dict[str, list[Failure]] = {}
    for failure in tally.failures:
        alike.setdefault(failure.place, []).append(failure)
    for place, failures in sorted(alike.items(), key=lambda pair: -len(pair[1])):
        lines.append(
            f"  {len(failures)} x {place}: input {failures[0].index}\n    "
            + failures[0].what.strip().replace("\n", "\n    ")
        )
    return "\n".join(lines)


def keep(name: str, tally: Tally, seed: int, folder: Path) -> None:
    """The first input of every kind of failure, made again."""
    first = {failure.place: failure for failure in reversed(tally.failures)}
    if not first:
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        reader = READERS[name](Path(place))
        for failure in first.values():
            path = folder / f"{name}-{seed}-{failure.index}{reader.suffix}"
            path.write_bytes(reader.make(generator(seed, failure.index)))
            print(f"  kept {path}")


if __name__ == "__main__":
    main()
