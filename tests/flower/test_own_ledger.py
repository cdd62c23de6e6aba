"""An owner's ledger keeps her privacy, whatever a server says."""

import sqlite3

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.flower import own_ledger
from flmarket_sim.flower.client_market import ClientMarket
from flmarket_sim.flower.messages import (
    BidRequest,
    MessageError,
    Named,
    OfferRequest,
    SaleRequest,
    Settlement,
    Terms,
    packed,
)
from flmarket_sim.flower.own_ledger import Key, OwnLedger
from flmarket_sim.flower.owner import Owner
from tests.support.loopback_grid import KilledError

TERMS = Terms(
    levels=4,
    clip=1.0,
    perturbation=Named(name="laplace"),
    model=Named(name="logistic"),
    features=3,
    classes=2,
    learning={"update": "gradient"},
    auction=Named(name="all-in-critical"),
    in_turn=False,
)
X, Y = np.linspace(0.0, 1.0, 30).reshape(10, 3), np.arange(10) % 2


def owner(folder, **changes):
    return Owner(**{"name": "ann", "x": X, "y": Y, "folder": folder, **changes})


def bid(round_=0, terms=TERMS, **changes):
    request = {"run": "r", "buyer": 0, "round": round_, "budget": 1.0, "terms": terms}
    return BidRequest(**{**request, **changes})


def sale(round_=0, loss=1.0, **changes):
    request = {
        "run": "r", "buyer": 0, "round": round_, "terms": TERMS, "privacy_loss": loss,
        "payment": 100.0, "records": 10, "parameters": packed(np.zeros(8)),
    }  # fmt: skip
    return SaleRequest(**{**request, **changes})


MENUS = TERMS.model_copy(update={"auction": Named(name="contract-menu"), "in_turn": True})


def offer(round_=0):
    return OfferRequest(
        run="r", buyer=0, round=round_, terms=MENUS, privacy_losses=[0.5, 1.0],
        payments=[50.0, 100.0], money=100.0, form="points",
    )  # fmt: skip


def sold(market):
    return market.ledger.totals().privacy_sold


def test_nothing_is_sold_beyond_the_lifetime_budget_whatever_the_server_says(tmp_path):
    market = ClientMarket(owner(tmp_path, lifetime_budget=2.5))
    budgets = []
    for number in range(5):  # another run and another restart each time
        market = ClientMarket(owner(tmp_path, lifetime_budget=2.5))
        reply = market.bid(bid(number, run=f"run-{number}"))
        if reply.privacy_budget is None:
            with pytest.raises(MessageError, match="has not bid"):
                market.sell(sale(number, 0.1, run=f"run-{number}"))
            continue
        budgets.append(reply.privacy_budget)
        answer = market.sell(sale(number, reply.privacy_budget, run=f"run-{number}"))
        assert answer.accepted and answer.gradient is not None
    assert budgets == [1.0, 1.0, 0.5]
    assert sold(market) == 2.5


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["reserve", "sell", "release", "restart"]),
            st.integers(0, 3),
            st.floats(0.1, 2.0),
        ),
        max_size=25,
    )
)
def test_the_ledger_is_that_of_a_list_of_sales(tmp_path_factory, steps):
    """The slow way: a dictionary of open promises and a dictionary of sales, added up each time."""
    folder = tmp_path_factory.mktemp("ledger")
    ledger, promises, sales, tokens = OwnLedger(folder, 3.0), {}, {}, {}
    for what, number, loss in steps:
        key = Key("r", 0, number)
        if what == "restart":
            ledger.close()
            ledger = OwnLedger(folder, 3.0)
        elif what == "release":
            ledger.release(tokens.get(number, ""))
            promises.pop(number, None)
        elif what == "reserve":
            others = {**{n: e for n, e in promises.items() if n != number}, **sales}
            fits = number not in sales and sum(others.values()) + loss <= 3.0
            tokens[number] = ledger.reserve(key, loss, 1.0, 0.0) or ""
            assert bool(tokens[number]) == fits
            if number not in sales:
                promises.pop(number, None)
            if fits:
                promises[number] = loss
        elif number in promises:
            ledger.sell(key, tokens[number], "train.sell", "same", {})
            sales[number] = promises.pop(number)
        else:
            with pytest.raises(FlmarketError, match="no promise"):
                ledger.sell(key, tokens.get(number, ""), "train.sell", "same", {})
        assert ledger.totals().privacy_sold == pytest.approx(sum(sales.values()))
        assert ledger.remaining() == pytest.approx(
            3.0 - sum(sales.values()) - sum(promises.values())
        )
    ledger.close()


def test_who_asks_again_gets_the_same_gradient_and_it_is_sold_once(tmp_path):
    market = ClientMarket(owner(tmp_path))
    market.bid(bid())
    first = market.sell(sale())
    again = ClientMarket(owner(tmp_path)).sell(sale())
    assert first == again and first.gradient is not None
    assert sold(market) == 1.0


def test_one_round_has_one_sale(tmp_path):
    market = ClientMarket(owner(tmp_path))
    market.bid(bid())
    market.sell(sale(loss=0.5))
    with pytest.raises(FlmarketError, match="asked before, with other numbers"):
        market.sell(sale(loss=0.4))
    assert sold(market) == 0.5


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (sale(loss=1.1), "more than her bid offers"),
        (sale(records=11), "more than her bid offers"),
        (sale(round_=1), "has not bid in round 1"),
        (sale(parameters=packed(np.zeros(9))), "has 8 parameters, and the buyer's has 9"),
        (sale(parameters=b"1234567"), "7 bytes"),
    ],
)
def test_a_sale_that_is_none_is_refused_and_costs_no_privacy(tmp_path, request_, reason):
    market = ClientMarket(owner(tmp_path))
    market.bid(bid())
    with pytest.raises(FlmarketError, match=reason):
        market.sell(request_)
    assert sold(market) == 0.0 and market.ledger.remaining() == 10.0


def test_a_server_names_no_code_that_a_client_would_run(tmp_path):
    market = ClientMarket(owner(tmp_path))
    terms = TERMS.model_copy(update={"perturbation": Named(name="evil.py:Evil")})
    with pytest.raises(MessageError, match="not one of this package"):
        market.bid(bid(terms=terms))
    market.bid(bid())
    evil = TERMS.model_copy(update={"model": Named(name="evil.py:Evil")})
    with pytest.raises(FlmarketError, match="not one of this package"):
        market.sell(sale(terms=evil))
    assert sold(market) == 0.0


def test_hardened_noise_is_the_default_and_a_client_without_it_does_not_bid(tmp_path):
    assert owner(tmp_path).noise == "hardened"
    market = ClientMarket(owner(tmp_path))
    market.bid(bid())
    one = market.sell(sale()).gradient
    other = ClientMarket(owner(tmp_path / "other"))
    other.bid(bid())
    assert one != other.sell(sale()).gradient
    terms = TERMS.model_copy(update={"perturbation": Named(name="priv-unit")})
    with pytest.raises(InputError, match=r"hardened noise exists for .* 'laplace' and 'duchi-l2'"):
        ClientMarket(owner(tmp_path / "third")).bid(bid(terms=terms))


def test_two_processes_at_one_ledger_book_what_leaves(tmp_path, monkeypatch):
    """Two servers ask for a sale of the same name and round; each is served by a process of hers.

    While one computes, the other promises less in the same place. The first gradient must not leave
    at the second one's loss.
    """
    first, second = (ClientMarket(owner(tmp_path, lifetime_budget=1.0)) for _ in range(2))
    first.bid(bid())
    delivers = ClientMarket._deliver

    def meanwhile(market, request):
        if market is first:
            monkeypatch.setattr(ClientMarket, "_deliver", delivers)
            assert second.sell(sale(loss=0.01)).gradient is not None
        return delivers(market, request)

    monkeypatch.setattr(ClientMarket, "_deliver", meanwhile)
    with pytest.raises(FlmarketError, match="asked before, with other numbers"):
        first.sell(sale(loss=1.0))
    assert sold(first) == 0.01 and first.ledger.remaining() == 0.99


def test_a_decline_in_another_process_stops_a_sale_of_the_same_round(tmp_path, monkeypatch):
    """A round has one answer, so a gradient that is not the answer does not leave."""
    first, second = (ClientMarket(owner(tmp_path)) for _ in range(2))
    first.bid(bid())
    delivers = ClientMarket._deliver

    def meanwhile(market, request):
        if market is first:
            assert not second.sell(sale(payment=0.0)).accepted
        return delivers(market, request)

    monkeypatch.setattr(ClientMarket, "_deliver", meanwhile)
    with pytest.raises(FlmarketError, match="asked before, with other numbers"):
        first.sell(sale())
    assert sold(first) == 0.0
    assert [event[3] for event in first.ledger.events("r")][-1] == "decision"


@pytest.mark.parametrize("when", ["looked", "computed"])
def test_two_processes_give_one_answer_to_one_request(when, tmp_path, monkeypatch):
    """The second process sells while the first one has looked for an answer, or computes."""
    first, second = (ClientMarket(owner(tmp_path, lifetime_budget=1.0)) for _ in range(2))
    first.bid(bid())
    answers = []
    place = {"looked": "_bid_of", "computed": "_deliver"}[when]
    original = getattr(ClientMarket, place)

    def meanwhile(market, *rest):
        if market is first and not answers:
            answers.append(second.sell(sale()))
        return original(market, *rest)

    monkeypatch.setattr(ClientMarket, place, meanwhile)
    assert first.sell(sale()) == answers[0] and answers[0].gradient is not None
    assert sold(first) == 1.0
    kinds = [event[3] for event in first.ledger.events("r")]
    assert kinds == ["announcement", "bid", "allocation", "decision", "model", "gradient"]


def test_a_cancelled_promise_of_one_process_is_not_that_of_another(tmp_path):
    ledger = OwnLedger(tmp_path, 2.0)
    mine = ledger.reserve(Key("r", 0, 0), 1.0, 1.0, 0.0)
    theirs = OwnLedger(tmp_path, 2.0).reserve(Key("r", 0, 0), 0.5, 1.0, 0.0)
    ledger.release(mine)
    assert ledger.remaining() == 1.5
    ledger.sell(Key("r", 0, 0), theirs, "train.sell", "theirs", {})
    assert ledger.totals().privacy_sold == 0.5


@pytest.mark.parametrize("stage", ["bid", "choose", "sell"])
def test_after_a_kill_her_own_view_has_every_event_once(tmp_path, stage, monkeypatch):
    """She is killed before her reply or a payment is stored; then she is asked again."""

    def killed(*_, **__):
        raise KilledError

    def answered(market):
        if stage == "choose":
            market.choose(offer(1))
        elif stage == "sell":
            market.sell(sale(1))

    terms = TERMS if stage != "choose" else MENUS
    paid = {"paid_buyers": [0], "paid_rounds": [0], "paid": [2.0]}
    request = bid(1, terms=terms, **paid)
    whole = ClientMarket(owner(tmp_path / "whole"))
    whole.bid(request)
    answered(whole)
    market = ClientMarket(owner(tmp_path / "killed"))
    if stage != "bid":
        market.bid(request)
    with monkeypatch.context() as patch:
        patch.setattr(OwnLedger, "_keep", killed)
        patch.setattr(OwnLedger, "_log", killed)
        with pytest.raises(KilledError):
            market.bid(request) if stage == "bid" else answered(market)
    market = ClientMarket(owner(tmp_path / "killed"))
    for _ in range(2):
        market.bid(request)
        answered(market)
    kinds = [[event[3] for event in one.ledger.events("r")] for one in (whole, market)]
    assert kinds[0] == kinds[1] and kinds[0][:3] == ["payment", "announcement", "bid"]
    assert len(kinds[0]) == {"bid": 3, "choose": 5, "sell": 7}[stage]


def test_a_payment_is_booked_once(tmp_path):
    market = ClientMarket(owner(tmp_path))
    for _ in range(2):
        paid = {"paid_buyers": [0], "paid_rounds": [3], "paid": [12.5]}
        market.settle(Settlement(run="r", **paid))
        market.bid(bid(4, **paid))
    assert market.ledger.totals().earned == 12.5


def test_a_kill_between_promise_and_sale_gives_the_promise_back_in_the_next_round(tmp_path):
    market = ClientMarket(owner(tmp_path, lifetime_budget=1.5))
    market.bid(bid())
    assert market.ledger.reserve(Key("r", 0, 0), 1.0, 5.0, 0.0)
    again = ClientMarket(owner(tmp_path, lifetime_budget=1.5))
    assert again.ledger.remaining() == 0.5
    assert again.ledger.remaining(Key("r", 1, 1)) == again.ledger.remaining(Key("s", 0, 1)) == 0.5
    assert again.bid(bid(1)).privacy_budget == 1.0
    assert again.ledger.remaining() == 1.5


@pytest.mark.parametrize(
    "wrong", [{"rate": -1.0}, {"lifetime_budget": 0.0}, {"y": []}, {"noise": "none"}, {"name": ""}]
)
def test_an_owner_who_is_none_is_refused(tmp_path, wrong):
    with pytest.raises(InputError):
        owner(tmp_path, **wrong)


def test_a_promise_that_nobody_calls_in_ends(tmp_path, monkeypatch):
    """A server that asks for promises and never buys takes the budget for an hour, not for life."""
    now = 1e9
    monkeypatch.setattr(own_ledger.time, "time", lambda: now)
    ledger = OwnLedger(tmp_path, 2.0)
    idle = ledger.reserve(Key("idle", 0, 0), 2.0, 1.0, 0.0)
    assert ledger.remaining() == 0.0 and not ledger.reserve(Key("r", 0, 0), 1.0, 1.0, 0.0)
    now += own_ledger.OPEN + 1.0
    assert ledger.remaining() == 2.0
    token = ledger.reserve(Key("r", 0, 0), 1.5, 1.0, 0.0)
    with pytest.raises(FlmarketError, match="has run out"):
        ledger.sell(Key("idle", 0, 0), idle, "train.sell", "late", {})
    ledger.sell(Key("r", 0, 0), token, "train.sell", "in time", {})
    assert ledger.totals().privacy_sold == 1.5 and ledger.remaining() == 0.5


def test_an_old_promise_that_still_fits_is_kept(tmp_path, monkeypatch):
    now = 1e9
    monkeypatch.setattr(own_ledger.time, "time", lambda: now)
    ledger = OwnLedger(tmp_path, 2.0)
    token = ledger.reserve(Key("slow", 0, 0), 2.0, 1.0, 0.0)
    now += 10 * own_ledger.OPEN
    ledger.sell(Key("slow", 0, 0), token, "train.sell", "late", {})
    assert ledger.totals().privacy_sold == 2.0 and ledger.remaining() == 0.0


def test_the_end_of_a_run_ends_its_promises(tmp_path):
    market = ClientMarket(owner(tmp_path, lifetime_budget=2.0))
    market.ledger.reserve(Key("r", 0, 3), 1.5, 1.0, 0.0)
    market.ledger.reserve(Key("other", 0, 3), 0.25, 1.0, 0.0)
    market.settle(Settlement(run="r"))
    assert market.ledger.remaining() == 1.75


def test_a_ledger_without_times_and_tokens_is_read(tmp_path):
    ledger = OwnLedger(tmp_path, 2.0)
    token = ledger.reserve(Key("r", 0, 0), 1.0, 1.0, 0.0)
    ledger.sell(Key("r", 0, 0), token, "train.sell", "once", {})
    ledger.close()
    with sqlite3.connect(tmp_path / own_ledger.FILE) as older:
        older.execute("ALTER TABLE sales DROP COLUMN time")
        older.execute("ALTER TABLE sales DROP COLUMN token")
    older.close()
    again = OwnLedger(tmp_path, 2.0)
    assert again.remaining() == 1.0 and again.reserve(Key("r", 0, 1), 1.0, 1.0, 0.0)
