"""Small markets that a simulation and real clients can both hold."""

from flmarket_sim.flower.client import market_app
from flmarket_sim.flower.server_market import Settings, serve
from flmarket_sim.flower.simulated_owners import NUMBER, SimulatedOwners
from flmarket_sim.scenario.scenario_file import load_scenario
from tests.support.loopback_grid import LoopbackGrid

OWNERS = 6


def small(**changes):
    """A scenario with six owners of digits, three rounds, and all models kept."""
    settings = {
        "rounds": 3,
        "owners__count": OWNERS,
        "market__bidders": 5,
        "log__models": "every",
        "log__ceiling": "never",
        "budget": {"factor": [3.0, 4.0]},
    }
    return load_scenario("quickstart", **{**settings, **changes})


def grid_of(scenario, folder, **faults):
    """All owners of a scenario as nodes of a Grid in this process, with ledgers under `folder`."""
    owners = SimulatedOwners(scenario, folder)
    settings = [{NUMBER: number} for number in range(scenario.owners.count)]
    return LoopbackGrid(market_app(owners.of), settings, **faults), owners


def held(scenario, folder, **faults):
    """The run of a market of real clients, held in this process."""
    grid, _ = grid_of(scenario, folder / "owners", **faults)
    return serve(scenario, folder / "run", grid, Settings(drawn=True, gather=5.0))


BROKER_SEES = {
    "announcement": ["budget"],
    "bid": ["privacy_budget", "data_size", "value"],
    "allocation": ["privacy_loss", "payment"],
    "offer": ["place", "money", "privacy_losses", "payments"],
    "decision": ["accepted"],
    "gradient": ["privacy_loss", "records", "noise_scale", "bytes", "variance", "delta"],
    "weight": ["weight", "share", "privacy_loss"],
    "payment": ["amount"],
    "delivery": ["valid", "gradients", "owed", "error_bound", "variance", "squared_bias"],
    "round": ["budget", "asked", "bids", "winners", "accepted", "delivered", "spent", "valid"],
}


def seen(run, kind):
    """What the broker saw of one kind of event, in an order that does not depend on time."""
    names = ["round", "buyer", "sender", "receiver", *BROKER_SEES[kind]]
    rows = [tuple(str(row[name]) for name in names) for row in run.events(kind).to_pylist()]
    return sorted(rows)
