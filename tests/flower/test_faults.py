"""Late, silent, declining and disconnected clients are what they are in the simulation."""

import math

import numpy as np
import pytest

from flmarket_sim.flower.server_market import ServerMarket, Settings, serve
from tests.flower.small_markets import grid_of, held, seen, small
from tests.support.loopback_grid import KilledError

DEADLINES = {
    "market__bid_deadline": 0.5,
    "market__decision_deadline": 0.25,
    "market__gradient_deadline": 0.25,
}


def winners(run, number):
    rows = run.events("allocation").to_pylist()
    return [r["receiver"] for r in rows if r["round"] == number and r["privacy_loss"] > 0]


def node_of(owner):
    return owner + 1


def test_a_client_whose_app_fails_costs_her_own_sale_only(tmp_path):
    whole = held(small(), tmp_path / "whole")
    victim = winners(whole, 1)[0]
    grid, _ = grid_of(small(), tmp_path / "owners")
    answer = grid.app

    def failing(message, context):
        bad = message.metadata.message_type == "train.sell" and message.metadata.group_id == "1"
        if bad and context.node_id == node_of(victim):
            raise RuntimeError("out of memory")
        return answer(message, context)

    grid.app = failing
    run = serve(small(), tmp_path / "run", grid, Settings(drawn=True))
    assert seen(run, "bid") == seen(whole, "bid")
    assert seen(run, "allocation") == seen(whole, "allocation")
    lost = {(row["round"], row["sender"]) for row in run.events("dropout").to_pylist()}
    assert lost == {(1, victim)}
    paid = {
        (row["round"], row["receiver"], row["amount"])
        for row in run.events("payment").to_pylist()
        if row["sender"] == -1
    }
    all_paid = {
        (row["round"], row["receiver"], row["amount"])
        for row in whole.events("payment").to_pylist()
        if row["sender"] == -1
    }
    assert {row[:2] for row in all_paid - paid} == {(1, victim)} and not paid - all_paid


def test_who_is_not_connected_does_not_bid_and_nobody_waits_for_her(tmp_path):
    grid, _ = grid_of(small(rounds=1), tmp_path / "owners")
    grid.offline = {1, 2}
    run = serve(small(rounds=1), tmp_path / "run", grid, Settings(drawn=True, clients=4))
    bidders = {row["sender"] for row in run.events("bid").to_pylist()}
    assert bidders and not bidders & {0, 1}
    silent = {row["sender"] for row in run.events("dropout").to_pylist()}
    assert silent == {row["receiver"] for row in asked(run)} - bidders


def asked(run):
    return [row for row in run.events("announcement").to_pylist() if row["receiver"] >= 0]


def test_a_late_bid_is_not_in_the_auction_and_is_in_the_log(tmp_path):
    scenario = small(rounds=2, **DEADLINES)

    def held_back(node, message):
        first = message.metadata.message_type == "query.bid" and message.metadata.group_id == "0"
        return node == node_of(1) and first and ("1", "query.bid") not in groups

    grid, _ = grid_of(scenario, tmp_path / "owners", held=held_back)
    groups = set()
    push = grid.push_messages

    def pushing(messages):
        groups.update((m.metadata.group_id, m.metadata.message_type) for m in messages)
        return push(messages)

    grid.push_messages = pushing
    run = serve(scenario, tmp_path / "run", grid, Settings(drawn=True))
    first = {row["sender"] for row in run.events("bid").to_pylist() if row["round"] == 0}
    assert 1 not in first
    rows = run.events("late").to_pylist()
    assert [(row["round"], row["sender"], row["message"]) for row in rows] == [(0, 1, "bid")]


def test_a_late_gradient_is_neither_aggregated_nor_paid(tmp_path):
    scenario = small(rounds=2, **DEADLINES)
    whole = held(scenario, tmp_path / "whole")
    victim = winners(whole, 0)[0]
    groups = set()

    def held_back(node, message):
        first = message.metadata.message_type == "train.sell" and message.metadata.group_id == "0"
        return node == node_of(victim) and first and "1" not in groups

    grid, _ = grid_of(scenario, tmp_path / "owners", held=held_back)
    push = grid.push_messages

    def pushing(messages):
        groups.update(m.metadata.group_id for m in messages)
        return push(messages)

    grid.push_messages = pushing
    run = serve(scenario, tmp_path / "run", grid, Settings(drawn=True))
    rows = run.events("late").to_pylist()
    assert [(row["round"], row["sender"], row["message"]) for row in rows] == [
        (0, victim, "gradient")
    ]
    for kind, side in (("payment", "receiver"), ("weight", "receiver"), ("gradient", "sender")):
        first = [row for row in run.events(kind).to_pylist() if row["round"] == 0]
        assert victim not in {row[side] for row in first}


@pytest.mark.parametrize("killed", [False, True])
def test_a_gradient_that_is_late_in_the_last_round_is_in_the_log(killed, tmp_path, monkeypatch):
    """It comes while owners hear that the run is over, also if the server is killed then."""
    scenario = small(rounds=1, **DEADLINES)
    victim = winners(held(scenario, tmp_path / "whole"), 0)[0]
    settling = []

    def held_back(node, message):
        last = message.metadata.message_type == "train.sell" and node == node_of(victim)
        return last and not settling

    grid, _ = grid_of(scenario, tmp_path / "owners", held=held_back)
    push = grid.push_messages

    def pushing(messages):
        settling.extend(m for m in messages if m.metadata.message_type == "query.settle")
        return push(messages)

    grid.push_messages = pushing
    if killed:
        heard = ServerMarket._note_late

        def dies(market, late):
            raise KilledError

        monkeypatch.setattr(ServerMarket, "_note_late", dies)
        with pytest.raises(KilledError):
            serve(scenario, tmp_path / "run", grid, Settings(drawn=True))
        monkeypatch.setattr(ServerMarket, "_note_late", heard)
        grid, _ = grid_of(scenario, tmp_path / "owners")
    run = serve(scenario, tmp_path / "run", grid, Settings(drawn=True))
    late = [(row["sender"], row["message"]) for row in run.events("late").to_pylist()]
    assert late == [(victim, "gradient")]
    silent = [row["sender"] for row in run.events("dropout").to_pylist()]
    assert silent == [victim]  # at the deadline nobody knows that she will be late


def test_an_owner_declines_what_pays_less_than_her_privacy_is_worth(tmp_path):
    scenario = small(auction={"name": "tests.flower.underpaying:Underpaying"}, rounds=1)
    run = held(scenario, tmp_path)
    decisions = run.events("decision").to_pylist()
    assert decisions and not any(row["accepted"] for row in decisions)
    assert not len(run.events("gradient")) and not len(run.events("payment"))
    assert run.rounds.to_pylist()[0]["valid"] is False
    assert math.isinf(run.rounds.to_pylist()[0]["error_bound"])


def test_a_reply_that_is_none_of_this_market_is_no_reply(tmp_path):
    """One client sends numbers that are not finite, another a vector of another length."""
    from flmarket_sim.flower.client import content_of
    from flmarket_sim.flower.library import flower
    from flmarket_sim.flower.messages import SaleReply, packed

    whole = held(small(rounds=1), tmp_path / "whole")
    victim = winners(whole, 0)[0]
    for name, gradient in {"nan": packed(np.full(650, np.nan)), "short": b"12345678"}.items():
        grid, _ = grid_of(small(rounds=1), tmp_path / f"{name}-owners")
        answer = grid.app

        def lying(message, context, gradient=gradient, answer=answer):
            hers = context.node_id == node_of(victim)
            if hers and message.metadata.message_type == "train.sell":
                reply = SaleReply(accepted=True, delivered=True, gradient=gradient)
                return flower().Message(content_of(reply), reply_to=message)
            return answer(message, context)

        grid.app = lying
        run = serve(small(rounds=1), tmp_path / name, grid, Settings(drawn=True))
        assert victim not in {row["receiver"] for row in run.events("payment").to_pylist()}
        assert victim not in {row["receiver"] for row in run.events("weight").to_pylist()}
        assert np.isfinite(run.model(1).parameters).all()


def test_an_answer_above_her_menu_sells_nothing(tmp_path):
    from flmarket_sim.flower.client import content_of
    from flmarket_sim.flower.library import flower
    from flmarket_sim.flower.messages import Choice

    scenario = small(rounds=1, auction={"name": "contract-menu"})
    grid, _ = grid_of(scenario, tmp_path / "owners")
    answer = grid.app

    def greedy(message, context):
        reply = answer(message, context)
        if message.metadata.message_type != "query.offer":
            return reply
        choice = Choice.of(dict(reply.content.config_records["flmarket"]))
        more = Choice(
            privacy_loss=choice.privacy_loss,
            payment=2.0 * choice.payment + 1.0,
            records=choice.records,
        )
        return flower().Message(content_of(more), reply_to=message)

    grid.app = greedy
    run = serve(scenario, tmp_path / "run", grid, Settings(drawn=True))
    assert len(run.events("offer")) and not len(run.events("payment"))


def test_the_end_of_a_run_ends_a_promise_that_nobody_called_in(tmp_path):
    """She takes a menu in the last round, or in the last one in which she is asked, and the sale is
    lost on its way. Nobody owes her anything."""
    owners = {"owners__lifetime_budget": 100.0}
    scenario = small(rounds=2, auction={"name": "seq-price"}, **owners, **DEADLINES)
    whole = held(scenario, tmp_path / "whole")
    victim = next(row for row in whole.events("gradient").to_pylist() if row["round"] == 1)
    node = node_of(victim["sender"])

    def lost(to, message):
        return to == node and message.metadata.message_type == "train.sell"

    grid, owners = grid_of(scenario, tmp_path / "owners", lost=lost)
    run = serve(scenario, tmp_path / "run", grid, Settings(drawn=True))
    paid = {row["receiver"] for row in run.events("payment").to_pylist()}
    assert victim["sender"] not in paid
    assert (node, "query.settle") in grid.sent
    ledger = owners.market(victim["sender"]).ledger
    assert ledger.totals().privacy_sold == 0.0
    assert ledger.remaining() == 100.0
    settled = {to for to, kind in grid.sent if kind == "query.settle"}
    assert settled == {node_of(one) for one in slowly_open(run) | heard_of_nothing(run)}


def slowly_open(run):
    """Row by row: owners who were asked for a sale after their last gradient of a buyer, and have
    not bid in a later round."""
    found = set()
    for number in range(2):
        for row in run.events("bid").to_pylist():
            if row["round"] == number:
                found.discard(row["sender"])
        for kind in ("offer", "allocation"):
            for row in run.events(kind).to_pylist():
                if row["round"] == number and row.get("privacy_loss") != 0.0:
                    found.add(row["receiver"])
        for row in run.events("gradient").to_pylist():
            if row["round"] == number:
                found.discard(row["sender"])
    return found


def heard_of_nothing(run):
    """Owners who were paid in the last round that asked them."""
    asked = [row for row in run.events("announcement").to_pylist() if row["receiver"] >= 0]
    last = {row["receiver"]: row["round"] for row in asked}
    paid = [row for row in run.events("payment").to_pylist() if row["sender"] == -1]
    return {row["receiver"] for row in paid if last[row["receiver"]] == row["round"]}
