"""The playground shows what the auction does: the truth beside one owner's report."""

import numpy as np
import pytest

from flmarket_sim import auctions
from flmarket_sim.auctions.play import expected_utility
from flmarket_sim.errors import InputError
from flmarket_sim.workbench import playground
from flmarket_sim.workbench.playground import Setting, curve, play

MARKET = {
    "scenario": "quickstart", "seed": 1, "owners": 10, "auction": "pay-as-bid",
    "rule": "opt-aggr", "factor": 0.6, "owner": 2, "asks": 1.0, "privacy_budget": 1.0,
    "data_size": 1.0,
}  # fmt: skip


def played(**changes):
    return play(Setting.of(MARKET | changes))


@pytest.mark.parametrize("auction", ["pay-as-bid", "all-in-critical", "posted-price", "clock"])
def test_the_truth_changes_nothing(auction):
    market = played(auction=auction)
    assert market["truth"] == market["report"]


def test_asking_more_pays_where_payments_are_bids():
    market = played(asks=1.3)
    assert market["truth"]["utility"][2] == 0
    assert market["report"]["utility"][2] == pytest.approx(0.3 * market["truth"]["payment"][2])


def test_asking_too_much_loses_the_sale_and_others_take_the_money():
    market = played(asks=50)
    assert market["report"]["privacy_loss"][2] == market["report"]["payment"][2] == 0
    assert market["report"]["error"] != market["truth"]["error"]


def test_utilities_are_those_of_the_auction_itself():
    truth, levels, _ = playground._market("quickstart", 10, 1)
    market = played(auction="all-in")
    auction = auctions.named("all-in")
    utility, _ = expected_utility(auction, truth, truth.bids(levels), 0.6 * truth.total_value())
    assert market["truth"]["utility"] == pytest.approx(np.maximum(utility[0], 0).tolist(), rel=1e-5)


def test_money_and_weights_add_up():
    for auction in auctions.names():
        if "regretnet" in auction or auction in ("seq-price", "record-price"):
            continue
        market = played(auction=auction, asks=1.2)
        for world in (market["truth"], market["report"]):
            assert world["spent"] <= market["budget"] * (1 + 1e-9)
            assert min(world["utility"]) >= -1e-6  # nobody sells below her cost
            assert sum(world["weight"]) == pytest.approx(1, abs=1e-4)


def test_the_curve_has_the_worlds_of_the_playground():
    line = curve(Setting.of(MARKET))
    place = line["asks"].index(1.3)
    assert line["utility"][place] == pytest.approx(played(asks=1.3)["report"]["utility"][2])


@pytest.mark.parametrize(
    "changes",
    [{"owners": 31}, {"owners": "ten"}, {"owner": 10}, {"asks": 0}, {"asks": float("nan")},
     {"privacy_budget": 1.5}, {"data_size": True}, {"scenario": "/etc/passwd"},
     {"auction": "none-such"}, {"rule": "none-such"}, {"rule": 5}],
)  # fmt: skip
def test_wrong_settings_are_refused_with_a_sentence(changes):
    with pytest.raises(InputError):
        played(**changes)


def test_the_server_plays(client):
    answer = client.post("/api/play", json=MARKET | {"asks": 1.3})
    assert answer.status_code == 200 and len(answer.json()["owners"]) == 10
    assert client.post("/api/curve", json=MARKET).status_code == 200
    assert client.post("/api/play", json={}).status_code == 400
