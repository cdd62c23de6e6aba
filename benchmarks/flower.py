"""`python -m benchmarks.flower`: 50 real clients on loopback, 20 rounds of digits.

It prints the seconds from the start of the first process to the end of the last, and of them the
bridge's own share: what the server does beside Flower (auction, log, weights, the buyer's step),
and what clients do beside Flower and their models (bids, decisions, ledgers, perturbation), as
processor time of all of them over the processor time of the whole. Nobody waits for some processes
of Flower, so the system does not add their times to ours: they are read twice a second while they
run. The last lines are for docs/flower.md.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from pathlib import Path

import psutil

from flmarket_sim.flower.local_market import run_locally
from flmarket_sim.scenario.scenario_file import load_scenario

LOOK = 0.5  # seconds between looks at the processes
SETTINGS = {
    "market__bidders": None,
    "owners__count": None,
    "perturbation": {"name": "laplace"},
    "budget": {"factor": [2.0, 3.0]},
    "log__ceiling": "never",
}


class ProcessorTime:
    """The processor time of this process and of all that come from it, by what was read last."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[int, float], tuple[str, float]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> ProcessorTime:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        here = psutil.Process()
        while not self._ended.wait(LOOK):
            for one in (here, *here.children(recursive=True)):
                try:
                    used, words = one.cpu_times(), " ".join(one.cmdline())
                    key = (one.pid, one.create_time())
                except psutil.Error:
                    continue
                self._seconds[key] = (words, used.user + used.system)

    def of(self, word: str = "") -> float:
        """Seconds of all processes whose command has this word in it."""
        return sum(seconds for words, seconds in self._seconds.values() if word in words)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    words.add_argument("--clients", type=int, default=50)
    words.add_argument("--rounds", type=int, default=20)
    words.add_argument("--processes", type=int, default=2)
    chosen = words.parse_args()
    sizes = {"market__bidders": chosen.clients, "owners__count": chosen.clients}
    scenario = load_scenario("quickstart", rounds=chosen.rounds, **{**SETTINGS, **sizes})
    with tempfile.TemporaryDirectory() as folder, ProcessorTime() as used:
        out, began = Path(folder) / "run", time.monotonic()
        run = run_locally(scenario, out, _show, chosen.processes)
        seconds, about = time.monotonic() - began, run.info["real_clients"]
        spent = [
            json.loads(path.read_text())["seconds"]
            for path in out.with_name("run-clients").glob("seconds-*.json")
        ]
    whole, serving = used.of(), used.of("flwr-serverapp")
    server = about["seconds_of_the_bridge"]
    clients = sum(one["market"] for one in spent)
    gradients = sum(one["gradients"] for one in spent)
    print(f"{chosen.clients} clients, {chosen.rounds} rounds, {os.cpu_count()} cores")
    print(f"wall clock         {seconds:8.1f} s, of which rounds {about['seconds']:.1f} s")
    print(f"processor time     {whole:8.1f} s in all processes")
    print(f"  server process   {serving:8.2f} s")
    print(f"  server's bridge  {server:8.2f} s")
    print(f"  clients' bridge  {clients:8.2f} s")
    print(f"  clients' models  {gradients:8.2f} s")
    print(f"bridge's own share {100 * (server + clients) / whole:8.2f} % of the processor time")
    print(f"                   {100 * (server + clients) / seconds:8.2f} % of the wall clock")
    share = 100 * (server + clients) / whole
    size = f"{chosen.clients} clients and {chosen.rounds} rounds of digits"
    print(f"\n{size} on {os.cpu_count()} cores took")
    print(f"{seconds:.0f} seconds. The bridge's own share of the processor time was {share:.1f} %.")


def _show(done: int, total: int) -> None:
    print(f"\rround {done} of {total}", end="\n" if done == total else "", flush=True)


if __name__ == "__main__":
    main()
