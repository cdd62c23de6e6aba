"""One client's message, whatever it is, ends no market: neither at once nor after a restart."""

import pytest

from flmarket_sim.flower.client import content_of
from flmarket_sim.flower.inbox import StoredInbox
from flmarket_sim.flower.library import flower
from flmarket_sim.flower.messages import RECORD, BidReply
from flmarket_sim.flower.server_market import Settings, serve
from tests.flower.small_markets import grid_of, small
from tests.support.loopback_grid import KilledError

MARKET = {"rounds": 1, "owners__count": 4, "market__bidders": 4}
LEVELS = small().market.levels
RISING = [float(level) for level in range(LEVELS)]
HOSTILE = 2  # an owner


def record(**values):
    app = flower()
    return app.RecordDict({RECORD: app.ConfigRecord(values)})


def bid(values=RISING, privacy_budget=1.0, data_size=10):
    reply = BidReply(values=values, privacy_budget=privacy_budget, data_size=data_size)
    return content_of(reply)


NO_BIDS = {
    "falling values": bid(values=RISING[::-1]),
    "a budget without end": bid(values=[0.0] * LEVELS, privacy_budget=1e308),
    "a budget of nothing": bid(privacy_budget=5e-324),
    "values without end": bid(values=[1e308] * LEVELS),
    "records without end": bid(data_size=2**61),
    "a table of bytes": record(hex="zz"),
    "a table of other bytes": record(hex="00"),
    "lists of bytes": record(values=[b"a", b"b"]),
}


def hostile_grid(scenario, folder, content, **faults):
    """All owners at their nodes; one answers each request for a bid with this content."""
    grid, _ = grid_of(scenario, folder, **faults)
    honest = grid.app

    def app(message, context):
        if context.node_id == HOSTILE + 1 and message.metadata.message_type == "query.bid":
            return flower().Message(content, reply_to=message)
        return honest(message, context)

    grid.app = app
    return grid


def test_a_bid_of_a_large_budget_is_one_like_any_other(tmp_path):
    """A market without learning releases one coordinate, which hardly varies at large losses."""
    scenario = small(**MARKET, model={"name": "none"}, market__bid_deadline=5.0)
    assert scenario.perturbation.name == "priv-unit"
    grid = hostile_grid(scenario, tmp_path / "owners", bid(privacy_budget=50.0))
    run = serve(scenario, tmp_path / "run", grid, Settings(drawn=True))
    assert HOSTILE in {row["sender"] for row in run.events("bid").to_pylist()}
    assert run.rounds.to_pylist()[0]["valid"]


@pytest.mark.parametrize("name", NO_BIDS)
def test_a_bid_that_is_none_costs_its_client_the_round_and_nobody_else(name, tmp_path):
    """The server is killed when it has the bids, and continues from its inbox."""
    scenario, content = small(**MARKET), NO_BIDS[name]
    grid = hostile_grid(scenario, tmp_path / "owners", content, kill_at="train.sell")
    with pytest.raises(KilledError):
        serve(scenario, tmp_path / "run", grid, Settings(drawn=True))
    assert (tmp_path / "run" / "inbox.log").read_text().count('"reply"') >= 4
    again = hostile_grid(scenario, tmp_path / "owners", content)
    run = serve(scenario, tmp_path / "run", again, Settings(drawn=True))
    lost = [(row["sender"], row["stage"]) for row in run.events("dropout").to_pylist()]
    assert lost == [(HOSTILE, "bid")]
    assert run.rounds.to_pylist()[0]["delivered"] == 3


def test_entries_come_back_from_the_disk_as_they_were(tmp_path):
    plain = {
        "hex": "zz", "bytes": b"\x00\xff", "many": [b"", b"\x01"], "number": 0.1, "whole": 2**60,
        "yes": True, "texts": ['{"hex": "00"}', "\n"],
    }  # fmt: skip
    entries = [
        {"kind": "reply", "owner": 1, "time": 0.5, "plain": plain},
        {"kind": "reply", "owner": 2, "time": 0.6, "plain": {"hex": "00"}},
        {"kind": "closed", "time": 0.7},
    ]
    written = StoredInbox(tmp_path)
    written.begin(0, 3)
    written.add(*entries)
    read = StoredInbox(tmp_path)
    read.begin(0, 3)
    assert [read.next() for _ in entries] == entries and not read.repeating
