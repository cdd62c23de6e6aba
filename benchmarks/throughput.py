"""Events a second of a market without learning, log on, against bare SimPy timeouts."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import simpy

from benchmarks.timing import best_of
from flmarket_sim.eventlog import ParquetLog
from flmarket_sim.market.mail import events_scheduled
from flmarket_sim.market.simulation import build_world, simulate
from flmarket_sim.scenario.scenario_file import build_scenario

BARE = 200_000


def bare(processes: int) -> None:
    """As many processes as the market has bidders, each waiting for one timeout after the other."""
    env = simpy.Environment()

    def wait():
        for _ in range(BARE // processes):
            yield env.timeout(1.0)

    for _ in range(processes):
        env.process(wait())
    env.run()


def main() -> None:
    print(
        "## Market throughput, log on, learning off\n\n"
        "Target: 35 % of bare SimPy. Reached in rounds of many bidders; in small rounds the fixed "
        "cost of an auction and a\n"
        "solve in numpy (about a millisecond) outweighs the messages.\n"
        "`all-in-critical`, `opt-aggr`, constant delays. Bare: as many SimPy processes as bidders, "
        "timeouts only.\n\n"
        "| bidders a round | log events | log events/s | SimPy events/s | bare timeouts/s "
        "| log / bare | SimPy / bare |\n"
        "|---|---|---|---|---|---|---|",
        flush=True,
    )
    folder = Path(tempfile.mkdtemp())
    for bidders, rounds in ((10, 400), (100, 150), (1000, 20)):
        table = {
            "rounds": rounds,
            "data": {"name": "synthetic", "records": 200_000},
            "owners": {"count": 10_000},
            "market": {"bidders": bidders},
            "model": {"name": "none"},
        }
        scenario = build_scenario(table)
        worlds = []
        for turn in range(7):
            log = ParquetLog(folder / f"{bidders}-{turn}", ("buyer",))
            worlds.append(build_world(scenario, log))
        seen = []

        def market(worlds=worlds, seen=seen) -> None:
            world = worlds.pop()
            simulate(world)
            world.log.close()
            seen.append((world.log.seq, events_scheduled(world.env)))

        spent, waited = best_of(7, market, lambda bidders=bidders: bare(bidders))
        logged, simpy_events = seen[0]
        rate, simpy_rate, bare_rate = logged / spent, simpy_events / spent, BARE / waited
        print(
            f"| {bidders:,} | {logged:,} | {rate:,.0f} | {simpy_rate:,.0f} | {bare_rate:,.0f} "
            f"| {rate / bare_rate:.0%} | {simpy_rate / bare_rate:.0%} |",
            flush=True,
        )
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
