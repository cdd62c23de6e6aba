"""What every market promises, in random scenarios with every classical auction and rule."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flmarket_sim as fm
from flmarket_sim.scenario.scenario_file import build_scenario

AUCTIONS = (
    "all-in",
    "all-in-critical",
    "proportional-share",
    "clock",
    "fair-query",
    "posted-price",
    "pay-as-bid",
    "agn",
    "greedy-ii",
    "random-sample",
    "gravin-3",
    "gravin-2",
    "vcg-k",
    "csra",
    "mfg-pricing",
    "stackelberg",
    "contract-menu",
    "shapley-pay",
    "fmore",
    "virtual-cost",
)
DELAYS = (
    {"name": "constant", "seconds": 0.1},
    {"name": "constant", "seconds": 0.0},
    {"name": "uniform", "low": 0.0, "high": 3.0},
    {"name": "lognormal", "median": 0.5, "sigma": 1.5},
)


@st.composite
def scenarios(draw):
    owners = draw(st.integers(1, 30))
    buyers = [
        {
            "name": name,
            "auction": {"name": draw(st.sampled_from(AUCTIONS))},
            "aggregation": {"name": draw(st.sampled_from(fm.aggregation.names()))},
        }
        for name in draw(st.sampled_from([("a",), ("a", "b")]))
    ]
    return {
        "seed": draw(st.integers(0, 10**6)),
        "rounds": draw(st.integers(1, 5)),
        "data": {"name": "synthetic", "records": 600, "features": 3, "classes": 2},
        "owners": {
            "count": owners,
            "families": draw(
                st.sampled_from(
                    [["linear", "quadratic", "sqrt", "exponential"], ["step"], ["step", "linear"]]
                )
            ),
            "availability": draw(st.sampled_from([1.0, 0.7])),
            "dropout": draw(st.sampled_from([0.0, 0.3])),
            "records_per_second": draw(st.sampled_from([[1.0, 20.0], 1e6])),
            "accept": draw(st.sampled_from(["rational", "always"])),
            **draw(st.sampled_from([{}, {"lifetime_budget": 2.0}])),
        },
        "market": {
            "bidders": draw(st.integers(1, owners)),
            "levels": draw(st.integers(1, 9)),
            "delay": draw(st.sampled_from(DELAYS)),
            "bid_deadline": 2.0,
            "decision_deadline": 2.0,
            "gradient_deadline": 10.0,
        },
        "budget": draw(st.sampled_from([{"factor": [0.1, 2.0]}, {"amount": [1.0, 500.0]}])),
        "model": {"name": draw(st.sampled_from(["none", "logistic"]))},
        "buyers": buyers,
    }


@given(scenarios())
@settings(max_examples=80)
def test_the_books_balance_and_privacy_is_kept(data):
    folder = Path(tempfile.mkdtemp())
    try:
        check_promises(fm.run(build_scenario(data), folder / "run").path, data)
    finally:
        shutil.rmtree(folder)


def check_promises(run, data):
    def keyed(kind, owner):
        return {
            (r["buyer"], r["round"], r[owner]): r
            for r in fm.read_events(run, kind).to_pylist()
            if r[owner] >= 0
        }

    bids, offers, accepted = (
        keyed("bid", "sender"),
        keyed("allocation", "receiver"),
        keyed("decision", "sender"),
    )
    gradients, weights, payments = (
        keyed("gradient", "sender"),
        keyed("weight", "receiver"),
        keyed("payment", "receiver"),
    )
    rounds = {(r["buyer"], r["round"]): r for r in fm.read_events(run, "round").to_pylist()}
    owners = {r["owner"]: r for r in fm.read_owners(run).to_pylist()}
    assert len(rounds) == data["rounds"] * len(data["buyers"])

    for (
        key,
        offer,
    ) in offers.items():  # no privacy loss above the reported budget, no report above the true one
        assert offer["privacy_loss"] <= bids[key]["privacy_budget"] * (1 + 1e-9)
        assert bids[key]["privacy_budget"] <= owners[key[2]]["privacy_budget"]
    for key in payments:  # nobody is paid without a gradient, and each gets what she was promised
        assert key in gradients and key in weights and accepted[key]["accepted"]
        assert payments[key]["amount"] == offers[key]["payment"]
    assert weights.keys() == payments.keys() and weights.keys() <= gradients.keys()

    for (buyer, number), row in rounds.items():

        def mine(rows, buyer=buyer, number=number):
            return [r for key, r in rows.items() if key[:2] == (buyer, number)]

        received = sum(r["amount"] for r in mine(payments))
        assert row["spent"] == pytest.approx(received) and received <= row["budget"] * (1 + 1e-9)
        assert row["valid"] == bool(mine(weights)) and row["delivered"] == len(mine(weights))
        if row["valid"]:
            assert sum(r["weight"] for r in mine(weights)) == pytest.approx(1.0)
        assert row["privacy_sold"] == pytest.approx(sum(r["privacy_loss"] for r in mine(weights)))
        assert row["asked"] >= row["bids"] >= row["winners"] >= row["accepted"] >= row["delivered"]
    paid = [r for r in fm.read_events(run, "payment").to_pylist() if r["sender"] < -1]
    assert sum(r["amount"] for r in paid) == pytest.approx(
        sum(r["amount"] for r in payments.values())
    )

    ledger = {
        r["owner"]: r for r in fm.read_ledger(run).to_pylist()
    }  # the ledger is the sum of the log
    for owner, row in ledger.items():
        assert row["privacy_sold"] == pytest.approx(
            sum(g["privacy_loss"] for k, g in gradients.items() if k[2] == owner)
        )
        assert row["earned"] == pytest.approx(
            sum(p["amount"] for k, p in payments.items() if k[2] == owner)
        )
        assert row["privacy_sold"] <= data["owners"].get("lifetime_budget", float("inf")) * (
            1 + 1e-9
        )

    truthful = {
        b["name"]
        for b in data["buyers"]
        if b["auction"]["name"]
        in ("all-in-critical", "proportional-share", "gravin-3", "random-sample")
    }
    for (
        key,
        decision,
    ) in accepted.items():  # truthful owners never lose there: no offer is below cost
        if key[0] in truthful:
            assert decision["reason"] != "below cost" and offers[key]["payment"] >= decision[
                "value"
            ] * (1 - 1e-9)
    events = sum(fm.read_events(run, kind).num_rows for kind in fm.eventlog.KINDS)
    assert fm.read_run(run)["log"]["events"] == events
