"""A resident node comes back after a SuperLink that was lost, and says so once."""

import threading
from contextlib import contextmanager

import pytest

from flmarket_sim.errors import FlmarketError
from flmarket_sim.flower import fleet, resident_node
from flmarket_sim.flower.fleet import Fleet, Link, LostError
from flmarket_sim.flower.library import flower
from flmarket_sim.flower.resident_node import stay
from tests.support.loopback_grid import know_the_task


class Lost:
    """A connection that is lost at the second look for messages."""

    node_id = 7

    def __init__(self, error=LostError("the SuperLink does not know this node")):  # noqa: B008
        self.looks, self.error = 0, error

    def receive(self):
        self.looks += 1
        if self.looks == 2:
            raise self.error


class Last:
    """A connection that is there until the node is stopped, which is at its first look."""

    def __init__(self, stop):
        self.receive = stop.set


def connecting(monkeypatch, outcomes, stop):
    """`connected` with these outcomes, one after the other; then the end. Returns how often it was
    called."""
    calls = []

    @contextmanager
    def connected(link, ends):
        calls.append(link)
        if not outcomes:
            yield Last(stop)
            return
        if isinstance(outcome := outcomes.pop(0), Exception):
            raise outcome
        yield outcome

    monkeypatch.setattr(resident_node, "connected", connected)
    monkeypatch.setattr(resident_node, "FIRST", 0.01)
    return calls


def test_a_node_connects_again_after_its_superlink_has_forgotten_it(monkeypatch, capsys):
    stop, gone = threading.Event(), LostError("the SuperLink does not answer")
    calls = connecting(monkeypatch, [Lost(), gone, gone, Lost()], stop)
    stay(Link("here:1"), None, {}, stop)
    said = capsys.readouterr().err.splitlines()
    assert len(calls) == 5 and len(said) == 5  # what is the same again is not said again
    assert [("there again" in line) for line in said] == [False, False, True, False, True]


def test_an_error_that_nobody_expects_does_not_end_a_node(monkeypatch, capsys):
    stop, strange = threading.Event(), Lost(RuntimeError("a message that is none"))
    connecting(monkeypatch, [strange], stop)
    stop.wait = lambda seconds: strange.looks == 4 and stop.set()
    stay(Link("here:1"), None, {}, stop)
    assert strange.looks == 4
    assert capsys.readouterr().err == "flmarket: a message was lost: a message that is none\n"


def test_a_superlink_that_fails_again_and_again_is_asked_less_often(monkeypatch, capsys):
    stop, waits = threading.Event(), []

    def fails():
        raise LostError("the SuperLink gives this node no messages (500)")

    outcomes = [Lost()]
    for _ in range(3):
        outcomes.append(Last(stop))
        outcomes[-1].receive = fails
    connecting(monkeypatch, outcomes, stop)
    stop.wait = waits.append
    stay(Link("here:1"), None, {}, stop)
    assert [one for one in waits if one < 0.1] == [0.01, 0.02, 0.04, 0.08]
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_a_superlink_that_never_was_there_ends_the_node(monkeypatch):
    stop, gone = threading.Event(), LostError("the SuperLink does not answer")
    connecting(monkeypatch, [gone] * 50, stop)
    with pytest.raises(FlmarketError, match="here:1: the SuperLink does not answer"):
        stay(Link("here:1"), None, {}, stop, patience=0.0)


class Partial:
    """A connection over which messages come in parts, of which some come later or never."""

    node_id = 7

    def __init__(self, messages, there):
        self.messages, self.there, self.sent, self.pulled = messages, there, [], []

    def receive(self):
        if not self.messages:
            return None
        message = self.messages.pop(0)
        objects = flower("flwr.supercore.inflatable.inflatable_object")
        return message, objects.get_object_tree(message)

    def pull(self, run, part):
        self.pulled.append(part)
        if part not in self.there:
            raise flower("flwr.supercore.inflatable.inflatable_utils").ObjectUnavailableError(part)
        return self.there[part]

    def confirm(self, run, name):
        pass

    def send(self, reply, tree, seconds):
        self.sent.append(reply.metadata.message_type)
        return set(), ""


def message_of(kind):
    """A message of this type, and its parts."""
    app, objects = flower(), flower("flwr.supercore.inflatable.inflatable_object")
    know_the_task()
    content = app.RecordDict({"flmarket": app.ConfigRecord({"kind": kind})})
    message = app.Message(content, dst_node_id=7, message_type=kind)
    message.metadata.__dict__["_message_id"] = message.object_id
    parts = {name: part.deflate() for name, part in objects.get_all_nested_objects(message).items()}
    return message, parts


def test_a_message_of_which_a_part_is_missing_holds_up_no_other():
    """The sender of the first one was killed, or is slow: the second is answered at once."""
    first, parts = message_of("query.first")
    second, others = message_of("query.second")
    missing = next(name for name in parts if name != first.object_id)
    there = {name: part for name, part in parts.items() if name != missing} | others
    line = Partial([first, second], there)
    node = resident_node._Node(
        line, lambda message, context: flower().Message(message.content, reply_to=message), {},
        lambda: None,
    )  # fmt: skip
    assert node.answer_one() and line.sent == []
    assert node.answer_one() and line.sent == ["query.second"]
    assert not node.answer_one() and len(node.letters) == 1
    there[missing] = parts[missing]
    assert node.answer_one() and line.sent == ["query.second", "query.first"]
    assert not node.letters and all(line.pulled.count(part) <= 4 for part in parts)
    assert sum(line.pulled.count(part) for part in parts if part != missing) == len(parts) - 1


@pytest.mark.parametrize(("code", "kept"), [(500, True), (403, False)])
def test_a_part_is_asked_for_again_where_the_superlink_failed(code, kept, capsys):
    message, parts = message_of("query.one")
    line = Partial([message], parts)
    httpx, pull = flower("httpx"), line.pull

    def fails(run, part):
        line.pull = pull
        request = httpx.Request("POST", "http://here")
        httpx.Response(code, request=request).raise_for_status()

    line.pull = fails
    answer = lambda message, context: flower().Message(message.content, reply_to=message)  # noqa: E731
    node = resident_node._Node(line, answer, {}, lambda: None)
    node.answer_one()
    assert node.answer_one() == kept and line.sent == ["query.one"] * kept
    assert ("a message was lost" in capsys.readouterr().err) != kept and not node.letters


class Client:
    """A SuperLink that answers each request with one of these codes, with an error, or not."""

    def __init__(self, codes):
        self.codes = list(codes)

    def PullMessages(self, request):
        httpx = flower("httpx")
        if (code := self.codes.pop(0)) is None:
            raise httpx.ConnectError("refused")
        if isinstance(code, Exception):
            raise code
        request = httpx.Request("POST", "http://here")
        httpx.Response(code, request=request).raise_for_status()
        return "an answer"


def test_a_request_is_sent_again_only_where_that_helps(monkeypatch):
    monkeypatch.setattr(fleet, "FIRST", 0.001)
    stop = threading.Event()
    again = Client([None, 503, 200])
    assert Fleet(again, stop).call("PullMessages", None) == "an answer" and not again.codes
    forgotten = Client([401, 200])
    with pytest.raises(LostError, match="does not know this node"):
        Fleet(forgotten, stop).call("PullMessages", None)
    assert forgotten.codes == [200]
    gone = Fleet(Client([404]), stop)
    with pytest.raises(flower("httpx").HTTPStatusError):
        gone.call("PullMessages", None)
    assert not gone.lost
    for code in (429, 500):  # it is there and gives no messages: the node says that it leaves
        failing = Fleet(Client([code]), stop)
        with pytest.raises(LostError, match=f"no messages .*{code}"):
            failing.receive()
        assert not failing.lost
    garbled = Client([ValueError("Invalid protobuf response payload"), 200])
    assert Fleet(garbled, stop).call("PullMessages", None) == "an answer"
    monkeypatch.setattr(fleet, "RETRY", -1.0)
    with pytest.raises(LostError, match="does not answer"):
        Fleet(Client([None, None]), stop).call("PullMessages", None)


def test_an_answer_that_is_none_does_not_end_the_signs_of_life(monkeypatch):
    monkeypatch.setattr(fleet, "HEARTBEAT", 0.0)
    left, beats = threading.Event(), []

    class Garbled:
        def SendNodeHeartbeat(self, request):
            beats.append(request)
            if len(beats) == 3:
                left.set()
            raise ValueError("Invalid protobuf response payload")

    Fleet(Garbled(), threading.Event()).beat(left)
    assert len(beats) == 3
