"""A market of real clients and its simulation are the same market."""

import numpy as np
import pytest

from flmarket_sim.eventlog.run import Run
from flmarket_sim.flower.client import market_app
from flmarket_sim.flower.engine import run_in_process
from flmarket_sim.flower.server_market import Settings, serve
from flmarket_sim.flower.simulated_owners import SimulatedOwners
from flmarket_sim.market.simulation import run as simulate
from tests.flower.small_markets import BROKER_SEES, OWNERS, held, seen, small

MARKETS = {
    "local steps": {},
    "gradients of a torch model": {
        "learning__update": "gradient",
        "model": {"name": "tests.flower.tiny_net:TinyNet", "learning_rate": 0.1},
        "perturbation": {"name": "laplace"},
    },
    "drawn batches": {"learning__batch": 7},
    "unreliable owners": {
        "owners__availability": 0.7,
        "owners__dropout": 0.4,
        "rounds": 6,
        "owners__lifetime_budget": 6.0,
    },
    "fewer records": {"auction": {"name": "fmore"}},
    "menus in turn": {"auction": {"name": "seq-price"}},
    "menus for records": {"auction": {"name": "record-price"}},
    "lists in turn": {"auction": {"name": "contract-menu"}},
    "two buyers without learning": {
        "model": {"name": "none"},
        "buyers": [
            {"name": "ann", "budget": {"amount": 900.0}},
            {"name": "bob", "auction": {"name": "pay-as-bid"}, "budget": {"amount": 500.0}},
        ],
    },
}


def assert_same(real, simulated):
    for kind in BROKER_SEES:
        assert seen(real, kind) == seen(simulated, kind), kind
    for mine, theirs in zip(real.models(), simulated.models(), strict=True):
        np.testing.assert_allclose(mine.parameters, theirs.parameters, rtol=1e-5, atol=1e-6)
        assert (mine.gradient is None) == (theirs.gradient is None)
        if mine.gradient is not None:
            np.testing.assert_allclose(mine.gradient, theirs.gradient, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("market", MARKETS)
def test_real_clients_hold_the_market_of_the_simulation(market, tmp_path):
    scenario = small(**MARKETS[market])
    simulated = simulate(scenario, tmp_path / "simulated")
    real = held(scenario, tmp_path / "real")
    assert_same(real, simulated)
    assert sum(row["delivered"] for row in real.rounds.to_pylist()) > 2


def test_the_engine_of_flower_gives_the_same_market(tmp_path):
    scenario = small(rounds=2)
    simulated = simulate(scenario, tmp_path / "simulated")
    owners = SimulatedOwners(scenario, tmp_path / "owners")
    run_in_process(
        lambda grid: serve(scenario, tmp_path / "real", grid, Settings(drawn=True)),
        market_app(owners.of),
        OWNERS,
    )
    assert_same(Run(tmp_path / "real"), simulated)


def test_true_valuations_stay_with_the_clients(tmp_path):
    run = held(small(rounds=1), tmp_path)
    secret = {
        "bid": ["family", "rate", "true_value", "true_privacy_budget"],
        "decision": ["reason", "value"],
        "gradient": ["norm", "clipped", "finite"],
        "delivery": ["true_error"],
    }
    for kind, columns in secret.items():
        table = run.events(kind).to_pylist()
        assert table
        for column in columns:
            assert all(row[column] is None for row in table), (kind, column)
    assert all(
        row[column] is None
        for row in run.owners.to_pylist()
        for column in ("family", "rate", "privacy_budget", "data_size")
    )


def test_an_owner_writes_what_only_she_knows(tmp_path):
    from flmarket_sim.flower.own_view import write_own_view

    scenario = small()
    simulated = simulate(scenario, tmp_path / "simulated")
    held(scenario, tmp_path / "real")
    compared = 0
    for owner in range(OWNERS):
        write_own_view(tmp_path / "real" / "owners" / f"owner-{owner}", tmp_path / f"view-{owner}")
        view = Run(tmp_path / f"view-{owner}")
        for kind, columns in {
            "bid": ["round", "family", "rate", "value"],
            "decision": ["round", "accepted", "reason", "value"],
            "payment": ["round", "amount"],
        }.items():
            side = "receiver" if kind == "payment" else "sender"
            theirs = [
                [row[name] for name in columns]
                for row in simulated.events(kind).to_pylist()
                if row[side] == owner
            ]
            rows = view.events(kind).to_pylist()
            assert [[row[name] for name in columns] for row in rows] == theirs
            compared += len(theirs)
    assert compared > 20
