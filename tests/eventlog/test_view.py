"""The log as one participant sees it, from real runs."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.eventlog import KINDS, buyer_id, parquet_log, write_view
from flmarket_sim.eventlog.participants import Participant
from flmarket_sim.eventlog.record import Role
from flmarket_sim.eventlog.schema import ENVELOPE
from flmarket_sim.eventlog.view_numbers import new_numbers, write_key
from flmarket_sim.eventlog.visibility import seen_by
from flmarket_sim.market.mail import Inbox
from flmarket_sim.market.messages import BidMessage
from flmarket_sim.report.html import sources
from flmarket_sim.scenario.scenario_file import load_scenario
from tests.support.command_line import flmarket, json_output
from tests.support.paths import ROOT
from tests.support.sealed_json import without_hashes

VIEWERS = {
    "broker": -1,
    "buyer:hospital": buyer_id(0),
    "buyer:insurer": buyer_id(1),
    "owner:16": 16,
}

KEY = bytes(range(32))


@pytest.fixture(scope="module")
def unreliable(tmp_path_factory):
    """Two buyers, absent and late owners, dropouts."""
    scenario = load_scenario(
        ROOT / "scenarios/studies/unreliable.toml", ["rounds=8", "owners.count=20"]
    )
    run = fm.run(scenario, tmp_path_factory.mktemp("whole") / "run").path
    write_key(run, fm.read_run(run), KEY)
    return run


@pytest.fixture(scope="module")
def views(unreliable, tmp_path_factory):
    folder = tmp_path_factory.mktemp("views")
    for who in VIEWERS:
        write_view(unreliable, who, folder / who)
    return folder


@pytest.fixture(scope="module")
def liars(tmp_path_factory):
    """A market with liars and false names, and the bids that reached the broker."""
    bids, send = [], Inbox.send
    with pytest.MonkeyPatch.context() as patch:

        def overhear(inbox, message, delay):
            if isinstance(message, BidMessage):
                bids.append(message)
            send(inbox, message, delay)

        patch.setattr(Inbox, "send", overhear)
        scenario = load_scenario(
            ROOT / "scenarios/studies/liars.toml",
            ["rounds=12", "owners.count=40", "model.name=none"],
        )
        path = fm.run(scenario, tmp_path_factory.mktemp("liars") / "run").path
    return path, bids


def expected(run, kind, who, number):
    """What she sees of a kind, row by row and cell by cell: the slow way. `seq` left out."""
    role = who.partition(":")[0]
    rows = []
    for event in fm.read_events(run, kind).to_pylist():
        sent, got = event["sender"] == number, event["receiver"] == number
        both = {c.name for c in KINDS[kind] if c.seen.value == "sender and receiver"}
        mine = both | {c.name for c in KINDS[kind] if c.seen.value == "sender"}
        visible = mine if sent else both if got else set()
        if visible:
            names = [c.name for c in ENVELOPE[1:]] + [
                c.name for c in KINDS[kind] if role in seen_by(kind, c)
            ]
            envelope = {c.name for c in ENVELOPE}
            rows.append(
                {name: event[name] if name in visible | envelope else None for name in names}
            )
    return rows


def names_of_owners(views):
    """The owners of the log by their numbers in the broker's view."""
    names = range(-10, 20)
    new = new_numbers(set(names), Participant(Role.BROKER, -1, 20), KEY)
    return {number: name for name, number in new.items()}


def _in_one_order(rows, names=None):
    """Rows with the numbers of the log, in an order that depends on nothing but their content."""
    for row in rows:
        for end in ("sender", "receiver") if names else ():
            row[end] = names.get(row[end], row[end])
    ends = ("time", "buyer", "round", "sender", "receiver")
    return sorted(rows, key=lambda row: tuple(row[end] for end in ends))


@pytest.mark.parametrize("who", VIEWERS)
def test_a_view_has_her_own_events_and_of_these_what_she_can_know(unreliable, views, who):
    seqs = []
    for kind in KINDS:
        found = fm.read_events(views / who, kind)
        wanted = expected(unreliable, kind, who, VIEWERS[who])
        seqs += found.column("seq").to_pylist()
        if not wanted:
            assert found.num_rows == 0, kind
            continue
        rows = found.drop_columns(["seq"]).to_pylist()
        if who == "broker":
            rows, wanted = _in_one_order(rows, names_of_owners(views)), _in_one_order(wanted)
        if kind == "bid" and who == "broker":
            assert all(len(row.pop("values")) == 8 for row in rows)
            wanted = [
                {name: value for name, value in row.items() if name != "values"} for row in wanted
            ]
        assert rows == wanted, kind
    assert sorted(seqs) == list(range(1, len(seqs) + 1)), (
        "gaps would tell how much happens elsewhere"
    )
    assert fm.read_run(views / who)["log"]["events"] == len(seqs) > 10


def test_what_nobody_sends_reaches_nobody(unreliable, views):
    assert fm.read_events(unreliable, "dropout").num_rows > 0
    assert fm.read_events(views / "broker", "dropout").num_rows == 0, (
        "a broker waits in vain; she is not told why"
    )
    weights = fm.read_events(unreliable, "weight")
    assert (
        16 in weights.column("receiver").to_pylist()
        and fm.read_events(views / "owner:16", "weight").num_rows == 0
    )


def test_a_view_has_no_seed_no_hash_and_no_true_type_of_others(unreliable, views):
    whole = fm.read_run(unreliable)
    for who in VIEWERS:
        text = (views / who / "run.json").read_text()
        for secret in (
            "seed",
            '"sha256"',
            "scenario_sha256",
            "wall_seconds",
            "behaviours",
            "lifetime",
            whole["scenario_sha256"],
        ):
            assert secret not in text, secret
        assert {"owners", "data", "description"}.isdisjoint(json.loads(text)["scenario"])
    assert (
        not (views / "broker" / "owners.parquet").exists()
        and not (views / "broker" / "ledger.parquet").exists()
    )
    assert (
        fm.read_owners(views / "owner:16").to_pylist()
        == fm.read_owners(unreliable).slice(16, 1).to_pylist()
    )
    assert (
        fm.read_ledger(views / "owner:16").to_pylist()
        == fm.read_ledger(unreliable).slice(16, 1).to_pylist()
    )
    terms = {
        buyer["name"]: set(buyer)
        for buyer in fm.read_run(views / "buyer:insurer")["scenario"]["buyers"]
    }
    assert "model" in terms["insurer"] and "model" not in terms["hospital"]


def test_a_brokers_view_of_bids_is_what_the_bids_had_in_them(liars, tmp_path):
    run, messages = liars
    write_view(run, "broker", tmp_path / "view")
    found = fm.read_events(tmp_path / "view", "bid")
    assert {"family", "rate", "behaviour", "person", "true_value"}.isdisjoint(found.column_names)

    def told(values, privacy_budget, data_size):
        return (round(privacy_budget, 9), data_size, *(float(f"{value:.9g}") for value in values))

    shown = [
        told(row["values"], row["privacy_budget"], row["data_size"]) for row in found.to_pylist()
    ]
    said = [
        told(message.values.tolist(), message.privacy_budget, message.data_size)
        for message in messages
    ]
    assert sorted(shown) == sorted(said)


def test_neither_numbers_nor_places_give_false_names_away(liars, tmp_path):
    """In the log further names have high numbers and come last among the bids of a moment; a
    broker sees neither."""
    run, _ = liars
    write_view(run, "broker", tmp_path / "view")
    whole, seen = (fm.read_events(path, "bid").to_pylist() for path in (run, tmp_path / "view"))
    assert [(row["round"], row["time"]) for row in seen] == [
        (row["round"], row["time"]) for row in whole
    ]
    assert [row["seq"] for row in seen] == sorted(row["seq"] for row in seen)
    names = {row["sender"] for row in seen}
    assert max(row["sender"] for row in whole) >= 40 and len(names) == len(
        {row["sender"] for row in whole}
    )
    assert max(names) < len(np.unique(fm.read_events(run, "announcement").column("receiver")))
    for round_number in {row["round"] for row in whole}:
        before, after = (
            [row for row in rows if row["round"] == round_number] for rows in (whole, seen)
        )
        said, shown = (
            sorted((r["privacy_budget"], r["data_size"], r["value"]) for r in rows)
            for rows in (before, after)
        )
        assert said == shown
        moments = {row["time"] for row in before}
        assert all(
            _ascends([row["sender"] for row in after if row["time"] == moment])
            for moment in moments
        )


def _ascends(numbers):
    return numbers == sorted(numbers)


def test_a_view_of_a_run_that_was_stopped_has_what_its_journal_has(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_log, "EVENTS_PER_PART", 500)

    def stop(done, total):
        if done == 11:
            raise KeyboardInterrupt

    scenario = load_scenario(ROOT / "scenarios/quickstart.toml", ["model.name=none"])
    with pytest.raises(KeyboardInterrupt):
        fm.run(scenario, tmp_path / "run", progress=stop)
    bids = fm.read_events(tmp_path / "run", "bid").num_rows
    assert (
        bids
        > sum(
            pq.read_metadata(part).num_rows
            for part in tmp_path.glob("run/events/kind=bid/*.parquet")
        )
        > 0
    )
    write_view(tmp_path / "run", "broker", tmp_path / "view")
    assert fm.read_events(tmp_path / "view", "bid").num_rows == bids


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("seq", ["x"]),
        ("seq", [2**64 - 1]),
        ("seq", [None]),
        ("sender", ["x"]),
        ("values", ["x"]),
        ("rate", None),
        ("time", [None]),
    ],
)
def test_a_part_with_other_columns_is_refused_and_huge_numbers_cost_nothing(
    unreliable, tmp_path, column, values
):
    shutil.copytree(unreliable, tmp_path / "run")
    part = next((tmp_path / "run/events/kind=bid").glob("*.parquet"))
    table = pq.read_table(part)
    place = table.column_names.index(column)
    if values is None:
        changed = table.remove_column(place)
    else:
        kind = pa.string() if values == ["x"] else table.schema.field(place).type
        changed = table.set_column(place, column, pa.array(values * len(table), kind))
    pq.write_table(changed, part)
    with pytest.raises(InputError, match=f"{part.name} is damaged"):
        write_view(tmp_path / "run", "broker", tmp_path / "view")
    without_hashes(tmp_path / "run")
    if values == [2**64 - 1]:
        write_view(tmp_path / "run", "broker", tmp_path / "view")
    else:
        with pytest.raises(InputError, match=f"{column}.*|{column}"):
            write_view(tmp_path / "run", "broker", tmp_path / "view")


def test_an_owner_sees_all_that_she_does_under_her_names_and_no_behaviour_of_others(
    liars, tmp_path
):
    run, _ = liars
    people = [row for row in fm.read_events(run, "bid").to_pylist() if row["person"] is not None]
    person = people[0]["person"]
    write_view(run, f"owner:{person}", tmp_path / "view")
    bids = fm.read_events(tmp_path / "view", "bid")
    assert {number % 40 for number in bids.column("sender").to_pylist()} == {person}
    assert people[0]["sender"] in bids.column("sender").to_pylist()
    part = pq.read_table(tmp_path / "view/events/kind=bid/part-00000.parquet")
    assert set(part.column("behaviour").unify_dictionaries().chunk(0).dictionary.to_pylist()) == {
        "false-names"
    }


def test_sql_and_reports_on_a_view(views):
    assert fm.sql(views / "broker", "select count(*) as n from bid").to_pylist()[0]["n"] > 0
    assert fm.sql(views / "owner:16", "select count(*) as n from owners").to_pylist() == [{"n": 1}]
    with pytest.raises(InputError, match="view of broker, who does not know"):
        fm.read_owners(views / "broker")
    with pytest.raises(InputError, match="a report is of a whole run"):
        sources.read(views / "broker")


def test_wrong_participants_and_places_are_refused(unreliable, views, tmp_path):
    for who, told in (
        ("buyer", "several buyers"),
        ("buyer:x", "buyer:hospital"),
        ("owner:-1", "owner:0"),
        ("owner:²", "owner:0"),
    ):
        with pytest.raises(InputError, match=told):
            write_view(unreliable, who, tmp_path / "x")
    with pytest.raises(InputError, match="not empty"):
        write_view(unreliable, "broker", views / "broker")
    with pytest.raises(InputError, match="itself a view"):
        write_view(views / "broker", "broker", tmp_path / "x")
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "run.json").write_text('{"scenario": {"buyers": 3}}')
    with pytest.raises(InputError, match=r"run.json is damaged: 'scenario.buyers'"):
        write_view(damaged, "broker", tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_a_part_that_is_no_log_is_refused(unreliable, tmp_path):
    (tmp_path / "run/events/kind=bid").mkdir(parents=True)
    (tmp_path / "run/run.json").write_text((unreliable / "run.json").read_text())
    without_hashes(tmp_path / "run")
    pq.write_table(pa.table({"seq": [1]}), tmp_path / "run/events/kind=bid/part-00000.parquet")
    with pytest.raises(InputError, match="is damaged: column 'seq' is int64"):
        write_view(tmp_path / "run", "broker", tmp_path / "x")


def test_run_with_a_view_keeps_nothing_else(tmp_path):
    settings = ["scenarios/quickstart.toml", "--set", "rounds=2", "--set", "model.name=none"]
    told = json_output("run", *settings, "--view", "broker", "--out", tmp_path / "view", "--json")
    assert told["view"] == "broker" and "seed" not in json.dumps(told)
    assert [path.name for path in tmp_path.iterdir()] == ["view"]
    run = fm.run(
        load_scenario(ROOT / settings[0], ["rounds=2", "model.name=none"]), tmp_path / "whole"
    ).path
    shown = flmarket("view", run, "broker", "--out", tmp_path / "again")
    assert shown.returncode == 0 and "broker sees" in shown.stdout
    assert "--set seed=" in shown.stderr and "seed" not in shown.stdout
    ends = {"seq", "sender", "receiver"}  # the numbers of owners are drawn anew
    for kind in told["log"]["kinds"]:
        one, other = (
            [
                tuple(str(row[name]) for name in sorted(row.keys() - ends))
                for row in fm.read_events(tmp_path / place, kind).to_pylist()
            ]
            for place in ("view", "again")
        )
        assert sorted(one) == sorted(other)
    wrong = flmarket("run", *settings, "--view", "owner:500", "--out", tmp_path / "none")
    assert (
        wrong.returncode == 2
        and "no participant" in wrong.stderr
        and not (tmp_path / "none").exists()
    )
