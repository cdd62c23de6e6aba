"""The audit goes the way that gradients go in the market, and finds what is wrong there."""

import json
from functools import partial

import numpy as np
import pytest

from flmarket_sim import privacy
from flmarket_sim.experiments.engine import results_of
from flmarket_sim.market.mail import Inbox
from flmarket_sim.market.messages import GradientMessage
from flmarket_sim.market.simulation import rounds_only
from flmarket_sim.privacy import laplace
from flmarket_sim.privacy.privacy_audit import lower_bound, released
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.studies.privacy_audit_tasks import audit_results, count_hits, noise_tasks
from tests.support.command_line import flmarket

LOSS, CLIP = 1.0, 0.5


class Extreme:
    """A model whose every gradient is far beyond the threshold, along +e_1 or -e_1."""

    sign = 1.0

    def __init__(self, features: int, classes: int) -> None:
        pass

    def initial(self):
        return np.zeros(2)

    def gradients(self, parameters, data, rows, sizes):
        return np.tile([self.sign * 7.0, 0.0], (len(sizes), 1))

    def evaluate(self, parameters, data):
        raise AssertionError("not evaluated here")


@pytest.fixture
def sold(monkeypatch):
    """First coordinates of all gradients that owners of a market with one-signed gradients send."""
    from flmarket_sim.market import buyer, simulation

    def run(sign):
        found, send = [], Inbox.send
        with monkeypatch.context() as patch:
            patch.setattr(Extreme, "sign", sign)
            patch.setattr(simulation, "create_model", lambda *_: Extreme(2, 2))
            patch.setattr(buyer.Buyer, "_evaluate", lambda *_: None)

            def spy(inbox, message, delay):
                if isinstance(message, GradientMessage):
                    found.append(message.gradient[0])
                send(inbox, message, delay)

            patch.setattr(Inbox, "send", spy)
            market = {"bidders": 500, "levels": 1}
            owners = {"count": 500, "privacy_budget": LOSS, "accept": "always"}
            tables = {
                "market": market,
                "owners": owners,
                "privacy": {"clip": CLIP},
                "budget": {"factor": 10.0},
            }
            data = {"name": "synthetic", "records": 10_000}
            rounds_only(
                build_scenario(
                    {"rounds": 10, "data": data, "auction": {"name": "pay-as-bid"}} | tables
                )
            )
        return np.array(found)

    return run


def bound_of_a_market(sold):
    up, down = sold(1.0), sold(-1.0)
    assert len(up) == len(down) == 5000
    return lower_bound(int((up >= CLIP).sum()), int((down >= CLIP).sum()), 5000, 0.999)


def test_a_real_market_loses_what_it_says_and_half_the_noise_is_caught_there(sold, monkeypatch):
    assert 0.8 * LOSS < bound_of_a_market(sold) <= LOSS
    monkeypatch.setattr(
        laplace, "noise_scale", lambda loss, clip: np.asarray(clip / np.asarray(loss))
    )
    assert bound_of_a_market(sold) > LOSS


def test_the_audit_goes_the_way_of_the_market(monkeypatch):
    assert privacy.audit(1.0, draws=5000).passed
    monkeypatch.setattr(
        laplace, "noise_scale", lambda loss, clip: np.asarray(clip / np.asarray(loss))
    )
    assert not privacy.audit(1.0, draws=5000).passed


def test_the_bounds_hold_as_often_as_they_say():
    rng = np.random.default_rng(0)
    likely, unlikely = rng.binomial(200, 0.5, 3000), rng.binomial(200, 0.5 * np.exp(-1.0), 3000)
    above = [lower_bound(a, b, 200, 0.9) > 1.0 for a, b in zip(likely, unlikely, strict=True)]
    assert 0 < np.mean(above) < 0.1


def test_tasks_of_the_engine_give_the_same_audits(monkeypatch):
    monkeypatch.setattr("flmarket_sim.privacy.privacy_audit.BATCH", 300)
    tasks = noise_tasks([1.0, 2.0], 1.0, 500, 3, "simulation")
    assert len(tasks) == len({task.key for task in tasks}) == 8
    results = audit_results(tasks, results_of(tasks, count_hits), 0.99)
    assert results == [
        privacy.audit(loss, draws=500, confidence=0.99, seed=3) for loss in (1.0, 2.0)
    ]


def test_hardened_noise_passes_and_half_of_it_does_not():
    pytest.importorskip("opendp", reason="the extra [privacy] is not installed")
    hardened = partial(released, noise="hardened")
    assert privacy.audit(1.0, draws=1500, mechanism=hardened).passed
    half = privacy.audit(
        1.0, draws=1500, mechanism=lambda g, loss, clip, rng: hardened(g, 2 * loss, clip, rng)
    )
    assert not half.passed


def test_the_command_prints_bounds_beside_claims():
    told = flmarket(
        "privacy",
        "audit",
        "--draws",
        "2000",
        "--epsilon",
        "1",
        "--epsilon",
        "3",
        "--json",
        "--workers",
        "1",
    )
    rows = json.loads(told.stdout)
    assert told.returncode == 0 and [row["claimed"] for row in rows] == [1.0, 3.0]
    assert all(
        0 < row["lower_bound"] <= row["claimed"] and row["reach"] < row["claimed"] for row in rows
    )
    wrong = flmarket("privacy", "audit", "--noise", "soft")
    assert wrong.returncode == 2 and "Traceback" not in wrong.stderr


def test_the_command_fails_when_a_claim_is_refuted(monkeypatch):
    from typer.testing import CliRunner

    from flmarket_sim.cli.app import app

    arguments = ["privacy", "audit", "--draws", "2000", "--epsilon", "1", "--workers", "1"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    monkeypatch.setattr(
        laplace, "noise_scale", lambda loss, clip: np.asarray(clip / np.asarray(loss))
    )
    refuted = CliRunner().invoke(app, arguments)
    assert refuted.exit_code == 1
