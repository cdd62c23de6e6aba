"""A process with some owners of a scenario as resident nodes; see local_market.py.

    python -m flmarket_sim.flower.drawn_nodes SCENARIO.json FOLDER ADDRESS NUMBER...

It ends when its standard input ends, so it does not outlive the process that has started it.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flmarket_sim.flower.client import market_app
from flmarket_sim.flower.client_market import ClientMarket
from flmarket_sim.flower.ends_with_input import when_input_ends
from flmarket_sim.flower.fleet import Link
from flmarket_sim.flower.resident_node import stay
from flmarket_sim.flower.simulated_owners import NUMBER, SimulatedOwners
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.storage.atomic_files import write_text

SECONDS = "seconds-{}.json"  # what a process of nodes spent in the owners' own computing


def main(
    scenario: Path, folder: Path, address: str, numbers: list[int], stop: threading.Event
) -> None:
    """Serves owners by number until `stop`, each as a node and a thread of its own."""
    owners = SimulatedOwners(Scenario(**json.loads(scenario.read_text())), folder)
    spent = _Spent(owners.of)
    app = market_app(spent.market)
    threads = [
        threading.Thread(target=stay, args=(Link(address), app, {NUMBER: number}, stop))
        for number in numbers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    name = SECONDS.format(min(numbers))
    write_text(folder / name, json.dumps({"owners": len(numbers), "seconds": spent.seconds()}))


class _Spent:
    """How long owners compute: their bids, decisions, ledgers, gradients and noise."""

    def __init__(self, market: Callable[[Any], ClientMarket]) -> None:
        self._market, self._known = market, set[ClientMarket]()

    def market(self, context: Any) -> ClientMarket:
        one = self._market(context)
        self._known.add(one)
        return one

    def seconds(self) -> dict[str, float]:
        return {
            "market": sum(one.seconds_in_market for one in self._known),
            "gradients": sum(one.seconds_in_model for one in self._known),
        }


if __name__ == "__main__":
    ended = threading.Event()
    when_input_ends(ended.set)
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], [int(n) for n in sys.argv[4:]], ended)
