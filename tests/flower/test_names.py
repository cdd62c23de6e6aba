"""Who is who: a name belongs to one node at a time, and nobody is left out without a word."""

import time

import pytest

from flmarket_sim.flower import post
from flmarket_sim.flower.client import content_of
from flmarket_sim.flower.library import flower
from flmarket_sim.flower.messages import Present
from flmarket_sim.flower.server_market import Settings, serve
from tests.flower.small_markets import grid_of, small
from tests.support.loopback_grid import KilledError

MARKET = {"rounds": 2, "owners__count": 3, "market__bidders": 3}
OTHER = 3  # a node


def answering(grid, answer, node=OTHER):
    """A Grid in which the greeting of one node is answered by `answer(message)`."""
    honest = grid.app

    def app(message, context):
        if message.metadata.message_type == "query.hello" and context.node_id == node:
            return answer(message) or honest(message, context)
        return honest(message, context)

    grid.app = app
    return grid


def saying(name):
    return lambda message: flower().Message(content_of(Present(name=name)), reply_to=message)


def test_a_name_belongs_to_the_node_that_is_there_first(tmp_path, capsys):
    grid, _ = grid_of(small(**MARKET), tmp_path / "owners")
    answering(grid, saying("owner-0"))
    run = serve(small(**MARKET), tmp_path / "run", grid, Settings(drawn=True, clients=2))
    said = capsys.readouterr().out
    assert said.count("says that it is 'owner-0', who is at another node") == 1
    assert [row["name"] for row in run.owners.to_pylist()] == ["owner-0", "owner-1", None]
    asked = [node for node, kind in grid.sent if kind == "query.bid"]
    assert set(asked) == {1, 2}


def test_a_client_for_whom_there_is_no_place_is_named(tmp_path, capsys):
    grid, _ = grid_of(small(**MARKET), tmp_path / "owners")
    grid.settings[4] = {}
    answering(grid, saying("zoe"), node=4)
    serve(small(**MARKET), tmp_path / "run", grid, Settings(drawn=True))
    assert "node 4 is 'zoe', for whom the market has no place" in capsys.readouterr().out


def test_a_client_that_did_not_say_who_it_is_is_greeted_again(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(post, "AGAIN", 0.05)
    monkeypatch.setattr(post, "LOOK_AROUND", 0.01)
    grid, _ = grid_of(small(**MARKET), tmp_path / "owners")
    greetings = []

    def at_first_wrong(message):
        greetings.append(message)
        if len(greetings) == 1:
            app = flower()
            return app.Message(app.Error(code=2, reason=""), reply_to=message)

    answering(grid, at_first_wrong)
    run = serve(small(**MARKET), tmp_path / "run", grid, Settings(drawn=True, gather=30.0))
    assert len(greetings) == 2
    assert "node 3 does not say who it is" in capsys.readouterr().out
    assert None not in [row["name"] for row in run.owners.to_pylist()]


def test_a_greeting_that_is_lost_is_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(post, "AGAIN", 0.05)
    monkeypatch.setattr(post, "LOOK_AROUND", 0.01)
    lost = []

    def the_first_greeting(node, message):
        first = node == OTHER and message.metadata.message_type == "query.hello" and not lost
        lost.extend([message] if first else [])
        return first

    grid, _ = grid_of(small(**MARKET), tmp_path / "owners", lost=the_first_greeting)
    began = time.monotonic()
    run = serve(small(**MARKET), tmp_path / "run", grid, Settings(drawn=True, gather=30.0))
    assert len(lost) == 1 and time.monotonic() - began < 25.0  # no deadline was waited for
    assert None not in [row["name"] for row in run.owners.to_pylist()]
    assert {row["sender"] for row in run.events("bid").to_pylist()} == {0, 1, 2}


@pytest.mark.parametrize("asked", ["query.hello", "query.bid", "train.sell"])
def test_a_node_that_flower_reports_as_gone_is_asked_again(asked, tmp_path, monkeypatch, capsys):
    """A node with a key comes back under its number before anybody has seen it offline. The others
    take a second, so there is time for her in the same round."""
    monkeypatch.setattr(post, "LOOK_AROUND", 0.01)
    began = {}

    def slow(node, message):
        since = began.setdefault((node, message.metadata.reply_to_message_id), time.monotonic())
        late = node != OTHER and message.metadata.message_type != "query.hello"
        return late and time.monotonic() - since < 1.0

    grid, _ = grid_of(small(**MARKET), tmp_path / "owners", held=slow)
    honest, gone = grid.app, []

    def app(message, context):
        if context.node_id == OTHER and message.metadata.message_type == asked and not gone:
            gone.append(message)
            return flower().Message(flower().Error(code=5, reason="gone"), reply_to=message)
        return honest(message, context)

    grid.app = app
    run = serve(small(**MARKET), tmp_path / "run", grid, Settings(drawn=True))
    assert len(gone) == 1 and not len(run.events("dropout"))
    assert [row["bids"] for row in run.rounds.to_pylist()] == [3, 3]
    assert "does not say who it is" not in capsys.readouterr().out


def test_after_a_kill_an_owner_who_computes_is_waited_for(tmp_path, monkeypatch):
    """She cannot greet the new server before her gradient is done."""
    monkeypatch.setattr(post, "GREETING", 0.2)
    scenario = small(**MARKET)
    grid, _ = grid_of(scenario, tmp_path / "owners", kill_at="train.sell")
    with pytest.raises(KilledError):
        serve(scenario, tmp_path / "run", grid, Settings(drawn=True))
    began = []

    def computes(node, message):
        began.extend([time.monotonic()] if not began else [])
        return node == OTHER and time.monotonic() - began[0] < 2.0

    grid, _ = grid_of(scenario, tmp_path / "owners", held=computes)
    run = serve(scenario, tmp_path / "run", grid, Settings(drawn=True, clients=2))
    assert not [row for row in run.events("dropout").to_pylist() if row["round"] == 0]


def test_nobody_waits_long_for_a_node_that_never_says_who_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(post, "GREETING", 0.2)
    monkeypatch.setattr(post, "LOOK_AROUND", 0.01)

    def mute(node, message):
        return node == 4

    scenario = small(**MARKET, market__bid_deadline=20.0)
    grid, _ = grid_of(scenario, tmp_path / "owners", lost=mute)
    grid.settings[4], grid.offline = {}, {1}
    began = time.monotonic()
    run = serve(scenario, tmp_path / "run", grid, Settings(drawn=True, clients=2))
    assert time.monotonic() - began < 15.0
    assert {row["sender"] for row in run.events("bid").to_pylist()} == {1, 2}
