"""Who can see what: every column says so, and real messages hold no more than that."""

from dataclasses import fields, is_dataclass

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.eventlog.record import Column, Seen
from flmarket_sim.eventlog.round_log import RoundLog
from flmarket_sim.eventlog.schema import KINDS
from flmarket_sim.eventlog.visibility import PARTIES, seen_by
from flmarket_sim.market import messages, simulation
from flmarket_sim.market.cohort_gradients import CohortGradients
from flmarket_sim.market.mail import Inbox, Letter
from flmarket_sim.scenario.scenario_file import build_scenario, load_scenario
from tests.support.paths import ROOT

# kind -> what the market's own participants must never see of each other, whatever the schema says
PRIVATE = {
    "bid": {
        "family",
        "rate",
        "behaviour",
        "person",
        "true_privacy_budget",
        "true_data_size",
        "true_value",
    },
    "decision": {"reason", "value"},
    "gradient": {"norm", "clipped", "finite"},
    "dropout": {"stage", "reason"},
}
# message -> the kind whose columns its fields are, and by which names
SAID_IN = {
    messages.Announcement: ("announcement", {"budget": "budget"}),
    messages.BidMessage: (
        "bid",
        {"values": "values", "privacy_budget": "privacy_budget", "data_size": "data_size"},
    ),
    messages.Allocation: ("allocation", {"privacy_loss": "privacy_loss", "payment": "payment"}),
    messages.MenuMessage: ("offer", {"offer": "privacy_losses"}),
    messages.Decision: ("decision", {"accepted": "accepted"}),
    messages.Broadcast: ("model", {"parameters": "bytes"}),
    messages.GradientMessage: ("gradient", {"gradient": "bytes"}),
    messages.DeliveryMessage: (
        "delivery",
        {
            "gradient": "valid",
            "owed": "owed",
            "error_bound": "error_bound",
            "variance": "variance",
            "squared_bias": "squared_bias",
            "error_kind": "error_kind",
            "vector_bound": "vector_bound",
            "coordinate_bound": "coordinate_bound",
        },
    ),
    messages.Payment: ("payment", {"amount": "amount"}),
}
# what says which message this is, or repeats what its receiver has said or been told before
ADDRESSES = {"buyer", "round", "row", "slot", "reply", "inbox"}
REPEATED = {
    messages.Announcement: {"parameters"},
    messages.Decision: {"privacy_loss", "payment"},
    messages.DeliveryMessage: {"counts"},
}
TABLES = {
    messages.ReportColumns,
    messages.Bounds,
    messages.Offers,
    messages.RoundCounts,
}  # parts of messages or of nobody's: no message of their own


def test_a_column_without_a_declared_visibility_cannot_be_made():
    with pytest.raises(TypeError, match="seen"):
        Column("budget", KINDS["announcement"][0].type, meaning="money")
    assert all(isinstance(column.seen, Seen) for kind in KINDS.values() for column in kind)


def test_every_kind_says_who_sends_it_to_whom():
    assert set(PARTIES) == set(KINDS)


@pytest.mark.parametrize("kind", PRIVATE)
def test_true_types_true_gradients_and_reasons_stay_with_their_owner(kind):
    for column in KINDS[kind]:
        if column.name in PRIVATE[kind]:
            assert seen_by(kind, column) == ("owner",), column.name
    assert {column.name for column in KINDS[kind]} >= PRIVATE[kind]


def test_what_is_called_true_is_seen_by_no_other_participant():
    for kind, columns in KINDS.items():
        for column in columns:
            if column.name.startswith("true") or column.name in ("value_sold", "bound_of_data"):
                assert set(seen_by(kind, column)) <= {"owner"}, f"{kind}.{column.name}"


def test_every_field_of_every_message_is_an_address_or_a_column_that_its_receiver_sees():
    own = [
        made
        for made in vars(messages).values()
        if getattr(made, "__module__", "") == messages.__name__
    ]
    types = {made for made in own if hasattr(made, "_fields")}
    assert types == SAID_IN.keys() | TABLES
    for message, (kind, said) in SAID_IN.items():
        columns = {column.name: column for column in KINDS[kind]}
        fields = set(message._fields)
        if "bounds" in fields:
            fields |= set(messages.Bounds._fields) - fields
            fields.remove("bounds")
        assert fields == set(said) | ADDRESSES & fields | REPEATED.get(message, set()), message
        for name in said.values():
            assert columns[name].seen is Seen.BOTH, f"{message.__name__} says {kind}.{name}"


@pytest.mark.parametrize(
    "scenario", ["scenarios/studies/liars.toml", "scenarios/studies/unreliable.toml"]
)
def test_events_are_between_those_whom_the_schema_names(scenario, tmp_path):
    run = fm.run(
        load_scenario(ROOT / scenario, ["rounds=3", "model.name=none"]), tmp_path / "run"
    ).path
    for kind, parties in PARTIES.items():
        events = fm.read_events(run, kind)
        found = {
            (role(a), role(b))
            for a, b in zip(
                *(events.column(c).to_pylist() for c in ("sender", "receiver")), strict=True
            )
        }
        assert found <= set(parties), kind


def role(number):
    return "owner" if number >= 0 else "broker" if number == -1 else "buyer"


def reachable(thing, seen=None):
    """Every array and object inside a message, down to the memory that arrays are views of.

    Addresses lead to no content.
    """
    seen = {} if seen is None else seen
    if (
        thing is None
        or isinstance(thing, Letter | Inbox | str | int | float | bool)
        or id(thing) in seen
    ):
        return seen
    seen[id(thing)] = thing
    if isinstance(thing, np.ndarray):
        reachable(thing.base, seen)
    elif isinstance(thing, tuple | list):
        for inner in thing:
            reachable(inner, seen)
    elif is_dataclass(thing):
        for field in fields(thing):
            reachable(getattr(thing, field.name), seen)
    else:
        raise AssertionError(f"a message holds a {type(thing)}: say here what can be reached in it")
    return seen


@pytest.fixture
def overheard(monkeypatch):
    """All messages of a market in the order of sending, with its world and the clipped gradients
    that nobody may see."""

    def listen(tables, rounds=2):
        found, truths = [], []
        letter, inbox, compute = Letter.send, Inbox.send, CohortGradients.__init__
        with monkeypatch.context() as patch:

            def to_one(self, message, delay):
                found.append(message)
                letter(self, message, delay)

            def to_many(self, message, delay):
                found.append(message)
                inbox(self, message, delay)

            def computed(self, *rest):
                compute(self, *rest)
                truths.append(self.release.prepared)

            patch.setattr(Letter, "send", to_one)
            patch.setattr(Inbox, "send", to_many)
            patch.setattr(CohortGradients, "__init__", computed)
            scenario = build_scenario({"rounds": rounds} | tables)
            world = simulation.build_world(scenario, RoundLog(("buyer",)))
            simulation.simulate(world)
        return [message for message in found if message is not None], world, truths

    return listen


LIARS = {
    "behaviours": [
        {"name": "scale", "share": 0.3, "factor": 1.7},
        {"name": "false-names", "share": 0.2, "identities": 2},
    ]
}
MARKETS = {
    "auction": {"auction": {"name": "pay-as-bid"}, "owners": {"availability": 0.7} | LIARS},
    "menus": {"auction": {"name": "seq-price"}, "owners": {"availability": 0.7}},
}


@pytest.mark.parametrize("name", MARKETS)
def test_no_message_reaches_a_true_gradient_a_record_or_a_true_type(name, overheard):
    found, world, truths = overheard(MARKETS[name])
    kinds = {type(message) for message in found}
    assert {
        messages.BidMessage,
        messages.Decision,
        messages.Broadcast,
        messages.GradientMessage,
        messages.Payment,
    } <= kinds
    people = world.population
    secret = [
        *truths,
        world.truthful_values,
        people.rate,
        people.privacy_budget,
        people.data_size,
        people.family,
    ]
    secret += [world.data.train_x, world.data.train_y, people.rows, people.offsets]
    for message in found:
        for thing in reachable(message).values():
            if isinstance(thing, np.ndarray):
                assert not any(np.may_share_memory(thing, hidden) for hidden in secret), type(
                    message
                )
            assert not isinstance(thing, messages.ReportColumns | messages.Offers), type(message)
        if isinstance(message, messages.GradientMessage):
            distance = min(np.abs(true - message.gradient).sum(axis=1).min() for true in truths)
            assert distance > 1.0, "a gradient travels with its noise"


def test_a_bid_has_one_report_in_it_and_a_liars_is_not_the_truth(overheard):
    found, world, _ = overheard(MARKETS["auction"])
    bids = [message for message in found if isinstance(message, messages.BidMessage)]
    assert all(
        bid.values.shape == (world.scenario.market.levels,) and bid.values.base is None
        for bid in bids
    )
    true = {tuple(row) for row in world.truthful_values.tolist()}
    honest = [tuple(bid.values.tolist()) in true for bid in bids]
    assert any(honest) and not all(honest)
