"""One run of very many events: memory, bytes on disk, and a grouped query over all of it.

`python -m benchmarks.many_events [EVENTS] [FOLDER]` has 10^7 events by default; 10^8 take some
minutes and about 1.5 GB of disk.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import flmarket_sim as fm
from benchmarks.disk import size
from benchmarks.timing import peak_memory
from flmarket_sim.eventlog import KINDS
from flmarket_sim.scenario.scenario_file import build_scenario

MARKET = {
    "data": {"name": "synthetic", "records": 200_000},
    "owners": {"count": 10_000},
    "market": {"bidders": 1000, "delay": {"name": "lognormal", "median": 0.3}},
    "model": {"name": "none"},
}
MEMORY = ("tenth", "end", "peak")
EVENTS_PER_ROUND = 6_700  # a little less than what such rounds have
QUERIES = {
    "events and mean time of every kind": "select kind, count(*) as events, avg(time) from ("
    + " union all ".join(
        f"select '{kind}' as kind, time from {kind}{'s' * (kind == 'round')}" for kind in KINDS
    )
    + ") group by kind",
    "bids, asked and sold of every owner": "select b.sender, count(*) as bids, avg(b.value), "
    "sum(a.payment), sum(a.privacy_loss) "
    "from bid b join allocation a on a.receiver = b.sender and a.round = b.round group by b.sender",
    "payments of every hundred rounds": "select round // 100 as hundred, count(*), sum(amount), "
    "max(amount) from payment group by hundred",
}


def resident() -> float:
    """Memory of this process now, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096.0


def simulate(events: int, out: Path) -> None:
    """Prints memory during the run and at its peak; runs in a separate process."""
    rounds = math.ceil(events / EVENTS_PER_ROUND)
    seen: dict[int, float] = {}

    def watch(done: int, total: int) -> None:
        if done * 10 // total not in seen:
            seen[done * 10 // total] = resident()

    began = time.perf_counter()
    run = fm.run(build_scenario(MARKET | {"rounds": rounds}), out, progress=watch)
    seconds = time.perf_counter() - began
    numbers = {"rounds": rounds, "events": run.info["log"]["events"], "seconds": seconds}
    print(json.dumps(numbers | {"tenth": seen[1], "end": seen[10], "peak": peak_memory()}))


def ask(out: Path) -> None:
    """Prints seconds and rows of each query, and the memory of all; runs in a separate process."""
    queries = {}
    for name, query in QUERIES.items():
        began = time.perf_counter()
        rows = fm.sql(out, query).num_rows
        queries[name] = [time.perf_counter() - began, rows]
    print(json.dumps({"queries": queries, "peak": peak_memory()}))


def own_process(*arguments: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.many_events", *arguments], capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def main() -> None:
    match sys.argv[1:]:
        case ["simulate", events, out]:
            return simulate(int(events), Path(out))
        case ["ask", out]:
            return ask(Path(out))
    events = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**7
    with tempfile.TemporaryDirectory() as name:
        folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(name) / "run"
        made = own_process("simulate", str(events), str(folder))
        stored = size(folder)
        files = sum(1 for path in folder.rglob("*.parquet"))
        answers = own_process("ask", str(folder))
    memory = " MB, ".join(f"{made[k] / 1e6:,.0f}" for k in MEMORY)
    print(
        f"## {made['events']:,} events in one run\n\n"
        f"10,000 owners, 1,000 bidders a round, {made['rounds']:,} rounds, lognormal delays, "
        "no learning.\n\n"
        f"| what | measured |\n|---|---|\n"
        f"| time | {made['seconds']:,.0f} s, {made['events'] / made['seconds']:,.0f} events/s |\n"
        f"| memory after a tenth, at the end, at its peak | {memory} MB |\n"
        f"| on disk | {stored / 1e9:.2f} GB in {files:,} files, "
        f"{stored / made['events']:.1f} bytes an event |"
    )
    for name, (seconds, rows) in answers["queries"].items():
        print(f"| SQL: {name} | {seconds:.2f} s, {rows:,} rows |")
    print(f"| memory of the process that asked | {answers['peak'] / 1e6:,.0f} MB |")


if __name__ == "__main__":
    main()
