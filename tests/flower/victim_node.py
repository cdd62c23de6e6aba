"""A process with one owner as a node, who is killed in the middle of a sale of a certain round."""

import json
import os
import signal
import sys
import threading
from pathlib import Path

from flmarket_sim.flower.client import market_app
from flmarket_sim.flower.client_market import ClientMarket
from flmarket_sim.flower.fleet import Link
from flmarket_sim.flower.resident_node import stay
from flmarket_sim.flower.simulated_owners import NUMBER, SimulatedOwners
from flmarket_sim.scenario.model import Scenario

scenario, folder, address, number, fatal_round = sys.argv[1:]
owners = SimulatedOwners(Scenario(**json.loads(Path(scenario).read_text())), Path(folder))
sell = ClientMarket._deliver


def deliver(market, request):
    """She has promised the sale, and dies before her gradient leaves."""
    if request.round == int(fatal_round):
        os.kill(os.getpid(), signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    return sell(market, request)


ClientMarket._deliver = deliver
stay(Link(address), market_app(owners.of), {NUMBER: int(number)}, threading.Event())
