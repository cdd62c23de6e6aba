"""A real SuperLink and nodes as processes on loopback; some are killed."""

import sys

import numpy as np
import psutil
import pytest

from flmarket_sim.eventlog import read_run
from flmarket_sim.eventlog.run import Run
from flmarket_sim.flower.local_market import LocalMarket, follow
from flmarket_sim.flower.own_ledger import OwnLedger
from flmarket_sim.flower.project import SCENARIO, drawn_project, new_project
from flmarket_sim.market.checkpoint import read_checkpoint
from flmarket_sim.market.simulation import run as simulate
from tests.flower.small_markets import seen, small
from tests.support.patience import wait_until

pytestmark = pytest.mark.processes
FATAL = 1  # the round in which an owner is killed


def test_a_killed_client_costs_her_own_sale_only(tmp_path):
    deadlines = {"market__decision_deadline": 5.0, "market__gradient_deadline": 10.0}
    scenario = small(rounds=2, owners__count=4, market__bidders=4, **deadlines)
    simulated = simulate(scenario, tmp_path / "simulated")
    sales = [row for row in simulated.events("payment").to_pylist() if row["sender"] == -1]
    victim = next(row["receiver"] for row in sales if row["round"] == FATAL)
    folder, out = tmp_path / "clients", tmp_path / "run"
    project = folder / "project"
    drawn_project(project, scenario)
    with LocalMarket(folder) as market:
        market.start_link()
        arguments = [str(project / SCENARIO), str(folder), market.address]
        others = [str(number) for number in range(4) if number != victim]
        nodes = [sys.executable, "-m", "flmarket_sim.flower.drawn_nodes", *arguments, *others]
        market.start("owners", nodes)
        module = [sys.executable, "-m", "tests.flower.victim_node"]
        dying = market.start("victim", [*module, *arguments, str(victim), str(FATAL)])
        path = str((project / SCENARIO).resolve())
        number = market.run(project, out=str(out), scenario=path)
        follow(market, number, out, 2, None)
        assert dying.wait(60) not in (0, None)
    real = Run(out)
    for kind in ("bid", "allocation", "announcement"):
        assert seen(real, kind) == seen(simulated, kind)
    paid = [row for row in real.events("payment").to_pylist() if row["sender"] == -1]
    lost = {key(row) for row in sales} - {key(row) for row in paid}
    assert lost == {key(row) for row in sales if (row["round"], row["receiver"]) == (FATAL, victim)}
    models = [one.model(1).parameters for one in (real, simulated)]
    np.testing.assert_allclose(*models, rtol=1e-5, atol=1e-6)
    first = [row for row in seen(real, "weight") if row[0] == "0"]
    assert first == [row for row in seen(simulated, "weight") if row[0] == "0"]
    silent = [(row["round"], row["sender"]) for row in real.events("dropout").to_pylist()]
    assert silent == [(FATAL, victim)]
    hers = OwnLedger(folder / f"owner-{victim}", None).totals()
    assert hers.gradients == len([row for row in sales if row["receiver"] == victim]) - 1


def key(row):
    return row["round"], row["receiver"], row["amount"]


def test_a_written_project_runs_and_its_killed_server_continues(tmp_path):
    """`flmarket flower new`, two owners with `flmarket flower join`, and `flwr run`, twice."""
    project, out = tmp_path / "market", tmp_path / "run"
    new_project(project)
    scenario = project / "private_market" / "scenario.toml"
    text = scenario.read_text()
    assert "rounds = 5" in text and "count = 4" in text and "bidders = 4" in text
    text = text.replace("count = 4", "count = 2").replace("bidders = 4", "bidders = 2")
    scenario.write_text(text)
    config = {"out": str(out), "clients": 2}
    with LocalMarket(tmp_path / "clients") as market:
        link = market.start_link()
        market.environment["PYTHONPATH"] = str(project)
        for part, name in enumerate(("ann", "bob")):
            command = [sys.executable, "-m", "flmarket_sim.cli", "flower", "join", market.address]
            command += ["private_market.client:app", "--set", f"name={name}"]
            command += ["--set", f"part={part}", "--set", f"folder={tmp_path / 'owners'}"]
            market.start(name, command)
        market.run(project, **config)
        wait_until(lambda: rounds_done(out) >= 1)
        serving = [one for one in psutil.Process(link.pid).children(recursive=True) if serves(one)]
        assert serving
        for one in serving:
            one.kill()
        before = rounds_done(out)
        assert before < 5 and read_run(out)["outcome"] == "running"
        number = market.run(project, **config)
        follow(market, number, out, 5, None)
    run = Run(out)
    rounds = run.rounds.to_pylist()
    assert [row["round"] for row in rounds] == list(range(5))
    assert [row["name"] for row in run.owners.to_pylist()] in (["ann", "bob"], ["bob", "ann"])
    bids = [(row["round"], row["sender"]) for row in run.events("bid").to_pylist()]
    assert sorted(bids) == [(number, owner) for number in range(5) for owner in range(2)]
    for row in run.owners.to_pylist():
        totals = OwnLedger(tmp_path / "owners" / row["name"], None).totals()
        hers = run.ledger.to_pylist()[row["owner"]]
        assert totals.earned == pytest.approx(hers["earned"])
        assert totals.privacy_sold == pytest.approx(hers["privacy_sold"])
        assert totals.gradients == hers["gradients"]
    assert sum(row["spent"] for row in rounds) > 0.0


def rounds_done(out):
    start = read_checkpoint(out) if out.exists() else None
    return 0 if start is None else sum(start.facts.rounds)


def serves(process):
    try:
        return any("flwr-serverapp" in word for word in process.cmdline())
    except psutil.Error:
        return False
