"""What it costs that a finished run is what it says: as a share of opening it, and to verify it.

`python -m benchmarks.verify [--events 1e8]` simulates a million events. A larger log is made of
copies of these parts, with a run.json that has the hashes of them all; 10^8 events are 1 GB.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import pyarrow.parquet as pq

import flmarket_sim as fm
from benchmarks.disk import size
from benchmarks.many_events import EVENTS_PER_ROUND, MARKET
from benchmarks.timing import times_of
from flmarket_sim.eventlog import KINDS
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.storage import sealed_files
from flmarket_sim.storage.sealed_files import file_hash, sealed

SIMULATED = 10**6
TURNS = 200
SECONDS = 60.0


def opened(run: Path) -> int:
    """Reads every event, as a process does that has read nothing before."""
    sealed_files._known.clear()
    return sum(fm.read_events(run, kind).num_rows for kind in KINDS)


def opened_blindly(run: Path) -> int:
    """The same without hashes, headers of pages and checksums."""

    def unchecked(content: object, **options: object) -> pq.ParquetFile:
        return true(content, **(options | {"page_checksum_verification": False}))

    true = pq.ParquetFile
    with ExitStack() as stack:
        for target, made in (
            ("flmarket_sim.eventlog.reader.check_files", lambda *_: None),
            ("flmarket_sim.storage.untrusted_files.frame_in", lambda *_: (0, None)),
            ("flmarket_sim.eventlog.reader.FRAMES", "no frames"),
            ("flmarket_sim.storage.untrusted_files.pq.ParquetFile", unchecked),
        ):
            stack.enter_context(mock.patch(target, made))
        return opened(run)


def grown(run: Path, times: int) -> None:
    """Makes the log of a run so many times as large, by copies of its parts."""
    info = json.loads((run / "run.json").read_text())
    for name in [name for name in info["files"] if name.startswith("events/")]:
        first = run / name
        number = int(first.stem.removeprefix("part-"))
        digest = file_hash(first)
        for copy in range(1, times):
            other = first.with_name(f"part-{number + 1000 * copy:05d}.parquet")
            shutil.copy(first, other)
            other_name = other.relative_to(run).as_posix()
            info["files"][other_name], info["frames"][other_name] = digest, info["frames"][name]
    for kind in info["log"]["kinds"].values():
        kind["rows"] *= times
    info["log"]["events"] *= times
    (run / "run.json").write_text(json.dumps(sealed(info)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=float, default=SIMULATED)
    wanted = int(parser.parse_args().events)
    with tempfile.TemporaryDirectory() as name:
        tables = MARKET | {"rounds": min(wanted, SIMULATED) // EVENTS_PER_ROUND + 1}
        run = fm.run(build_scenario(tables), Path(name) / "run").path
        # processor time of all threads: a check may run beside something else
        sides = (lambda: opened(run), lambda: opened_blindly(run))
        checked, blind = times_of(TURNS, *sides, clock=time.process_time)
        more = [sum(checked[n::4]) / sum(blind[n::4]) - 1 for n in range(4)]
        small = fm.read_run(run)["log"]["events"]
        grown(run, -(-wanted // small))
        events, stored = fm.read_run(run)["log"]["events"], size(run)
        sealed_files._known.clear()
        began = time.perf_counter()
        (answer,) = fm.verify(run)
        seconds = time.perf_counter() - began
        assert answer.holds and not answer.unchecked, answer
    print(
        "## A finished run is what it says\n\n| what | measured |\n|---|---|\n"
        f"| opening {small:,} events with checks takes | {sum(checked) / sum(blind) - 1:.1%} "
        f"more processor time than without (all of {TURNS} turns together; each quarter of them: "
        f"{', '.join(f'{share:.1%}' for share in more)}) |\n"
        f"| `flmarket verify` of {events:,} events, {stored / 1e9:.2f} GB "
        f"| {seconds:.1f} s, {events / seconds / 1e6:.1f} million events/s |\n"
        f"| so 10^8 events take | {seconds * 1e8 / events:.0f} s of {SECONDS:.0f} |"
    )


if __name__ == "__main__":
    main()
