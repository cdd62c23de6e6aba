"""Certificates, keys and Flower's own SuperNode, as docs/flower.md has them."""

import sys

import pytest

from flmarket_sim.eventlog.run import Run
from flmarket_sim.flower import local_market
from flmarket_sim.flower.local_market import LocalMarket, follow
from flmarket_sim.flower.project import new_project
from tests.support.certificates import write_certificates, write_keys
from tests.support.patience import wait_until

pytestmark = pytest.mark.processes


def joins(market, name, *words):
    """A node of ours; `words` say how it knows the SuperLink and is known to it."""
    command = [sys.executable, "-m", "flmarket_sim.cli", "flower", "join", market.address]
    command += ["private_market.client:app", "--set", f"name={name}", "--set", "part=0"]
    market.start(name, [*command, "--set", f"folder={market.folder / 'owners'}", *words])


def test_known_nodes_hold_a_market_over_encrypted_lines(tmp_path):
    """Ann is a resident node, Bob is Flower's own, and Eve has a key that nobody has registered."""
    project, out, certificate = tmp_path / "market", tmp_path / "run", str(tmp_path / "ca.crt")
    new_project(project)
    scenario = project / "private_market" / "scenario.toml"
    text = scenario.read_text()
    for name in ("count", "bidders"):
        text = text.replace(f"{name} = 4", f"{name} = 2")
    scenario.write_text(text.replace("rounds = 5", "rounds = 1"))
    write_certificates(tmp_path)
    with LocalMarket(tmp_path / "clients") as market:
        host, port = market.address.split(":")
        own_end = [sys.executable, "-m", "flmarket_sim.flower.ends_with_input"]
        files = {"ca-certfile": "ca.crt", "certfile": "server.pem", "keyfile": "server.key"}
        words = [part for key, name in files.items() for part in (f"--ssl-{key}", tmp_path / name)]
        words += ["--enable-supernode-auth", "--disable-runtime-dependency-installation"]
        words += ["--host", host, "--port", port]
        market.start("superlink", [*own_end, local_market.SUPERLINK, *map(str, words)])
        (tmp_path / "clients" / "flower" / "config.toml").write_text(
            f'[superlink]\ndefault = "here"\n\n[superlink.here]\naddress = "{market.address}"\n'
            f'root-certificates = "{certificate}"\n'
        )
        wait_until(lambda: local_market._answers(host, int(port)))
        for name in ("ann", "bob", "eve"):
            write_keys(tmp_path, name)
        for name in ("ann", "bob"):
            made = market._flwr("supernode", "register", str(tmp_path / f"{name}.pub"), "here")
            assert made["success"], made
        market.environment["PYTHONPATH"] = str(project)
        for name in ("ann", "eve"):
            known = ["--root-certificates", certificate, "--key", str(tmp_path / name)]
            joins(market, name, *known)
        node = f"name='bob' part=1 folder='{market.folder / 'owners'}'"
        command = ["flower-supernode", "--superlink", market.address, "--node-config", node]
        command += ["--root-certificates", certificate]
        market.start("bob", [*command, "--auth-supernode-private-key", str(tmp_path / "bob")])
        number = market.run(project, out=str(out), clients=2)
        follow(market, number, out, 1, None)
    run, said = Run(out), (tmp_path / "clients" / "eve.log").read_text()
    assert sorted(row["name"] for row in run.owners.to_pylist()) == ["ann", "bob"]
    assert [row["bids"] for row in run.rounds.to_pylist()] == [2]
    assert run.rounds.to_pylist()[0]["delivered"] >= 1
    assert "refuses this node" in said
