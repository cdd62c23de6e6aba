import numpy as np
import pyarrow.parquet as pq
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.eventlog import BROKER, KINDS, ParquetLog, parquet_log
from flmarket_sim.eventlog.record import Record
from flmarket_sim.eventlog.round_log import RoundLog
from flmarket_sim.eventlog.schema import (
    SCHEMA_VERSION,
    AllocationRecord,
    DecisionRecord,
    DropoutReason,
    DropoutRecord,
    UpdateRecord,
    columns,
)
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.storage.atomic_files import disk_error
from tests.support.sealed_json import without_hashes


def fill(log, rounds=20):
    """Events at once, single events and tables; rows of a table happen long after it was made."""
    tables = []
    for number in range(rounds):
        owners, where = np.arange(number, number + 5), {"round": number, "buyer": 0}
        allocation = AllocationRecord(privacy_loss=owners / 7.0, payment=owners * 2.0)
        log.write(allocation, time=float(number), sender=BROKER, receiver=owners, **where)
        decision = DecisionRecord(
            accepted=owners % 2 == 0, reason=np.zeros(5, np.int8), value=owners * 1.5
        )
        tables.append(log.table(decision, sender=owners, receiver=BROKER, **where))
        loss = None if number % 2 else 0.25
        recall = [0.1, np.nan]
        update = UpdateRecord(
            valid=True, loss=loss, accuracy=0.5, recall=recall, balanced_accuracy=0.1
        )
        log.write(update, time=number + 0.5, sender=-2, receiver=-2, **where)
        for table in tables[::3]:
            table.happen(number % 5, number + 0.25)
        log.flush()
    log.close()
    return log.summary()


def test_the_same_events_give_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        fill(ParquetLog(tmp_path / name, ("buyer",)))
    parts = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*.parquet"))
    assert len(parts) == 3
    for part in parts:
        assert (tmp_path / "a" / part).read_bytes() == (tmp_path / "b" / part).read_bytes()


def test_the_logical_hash_does_not_depend_on_how_the_log_is_cut(tmp_path, monkeypatch):
    whole = fill(ParquetLog(tmp_path / "whole", ("buyer",)))
    monkeypatch.setattr(parquet_log, "EVENTS_PER_PART", 10)
    cut = fill(ParquetLog(tmp_path / "cut", ("buyer",)))
    assert whole == cut
    assert len(list((tmp_path / "cut").rglob("*.parquet"))) > 6
    monkeypatch.undo()
    assert fill(ParquetLog(tmp_path / "more", ("buyer",)), rounds=21)["sha256"] != whole["sha256"]


def test_events_are_numbered_in_the_order_in_which_they_happened(tmp_path):
    summary = fill(ParquetLog(tmp_path / "events", ("buyer",)))
    (tmp_path / "run.json").write_text("{}")
    seqs = [fm.read_events(tmp_path, kind).column("seq").to_pylist() for kind in KINDS]
    assert all(s == sorted(s) for s in seqs)
    assert sorted(seq for kind in seqs for seq in kind) == list(range(1, summary["events"] + 1))


def test_a_row_of_a_table_carries_its_values_and_its_own_time(tmp_path):
    log = ParquetLog(tmp_path / "events", ("anna",))
    record = DropoutRecord(stage=np.array([0, 1]), reason=DropoutReason.LIFETIME_BUDGET)
    table = log.table(record, round=3, buyer=0, sender=np.array([10, 11]), receiver=BROKER)
    table.happen(1, 2.5)
    log.close()
    (tmp_path / "run.json").write_text("{}")
    assert fm.read_events(tmp_path, "dropout").to_pylist() == [
        {
            "seq": 1,
            "time": 2.5,
            "round": 3,
            "buyer": "anna",
            "sender": 11,
            "receiver": -1,
            "stage": "gradient",
            "reason": "lifetime budget",
        }
    ]


def test_files_say_their_schema_and_what_columns_mean(tmp_path):
    fill(ParquetLog(tmp_path, ("buyer",)))
    schema = pq.read_schema(tmp_path / "kind=allocation" / "part-00000.parquet")
    assert schema.metadata[b"flmarket_schema"] == str(SCHEMA_VERSION).encode()
    assert schema.field("payment").metadata[b"meaning"]
    assert [c.name for c in columns("allocation", ())] == schema.names


@pytest.mark.parametrize("record", Record.__subclasses__(), ids=lambda record: record.kind)
def test_a_record_is_built_by_name_from_all_its_columns_and_no_others(record):
    values = {column.name: position for position, column in enumerate(KINDS[record.kind])}
    assert record(**values).cells() == list(values.values())
    assert record(**dict(reversed(values.items()))).cells() == list(values.values())
    with pytest.raises(TypeError, match="positional"):
        record(*values.values())
    with pytest.raises(TypeError, match="unexpected keyword"):
        record(**values, other=0)
    values.popitem()
    with pytest.raises(TypeError, match="missing"):
        record(**values)


def test_a_log_without_files_numbers_events_as_a_log_with_files_does(tmp_path):
    with_files, without = ParquetLog(tmp_path, ("buyer",)), RoundLog(("buyer",))
    without.close, without.summary = (lambda: None), (lambda: None)
    fill(with_files)
    fill(without)
    assert with_files.seq == without.seq > 0


def test_every_kind_begins_with_the_envelope():
    for kind in KINDS:
        assert [c.name for c in columns(kind, ())][:6] == [
            "seq",
            "time",
            "round",
            "buyer",
            "sender",
            "receiver",
        ]


def test_a_kind_without_events_reads_as_an_empty_table(market):
    table = fm.read_events(market(), "late")
    assert table.num_rows == 0 and "message" in table.column_names


def test_reading_what_is_not_there_is_explained(tmp_path, market):
    with pytest.raises(InputError, match=r"no run\.json"):
        fm.read_events(tmp_path, "bid")
    path = market()
    with pytest.raises(InputError, match="did you mean 'payment'"):
        fm.read_events(path, "paiment")
    with pytest.raises(InputError, match="SQL"):
        fm.sql(path, "select nothing from nowhere")
    part = next((path / "events" / "kind=bid").iterdir())
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(InputError, match=f"{part.name} is damaged"):
        fm.read_events(path, "bid")
    without_hashes(path)
    with pytest.raises(InputError, match="cannot be read"):
        fm.read_events(path, "bid")


def test_sql_sees_every_kind_and_the_owners(market):
    path = market()
    assert fm.sql(path, "select count(*) as n from rounds").to_pylist() == [{"n": 4}]
    joined = fm.sql(
        path, "select max(b.value - o.rate * 0) as v from bid b join owners o on o.owner = b.sender"
    )
    assert joined.to_pylist()[0]["v"] > 0


def test_a_full_disk_is_said_to_be_full(tmp_path):
    log = ParquetLog(tmp_path / "events", ("buyer",))
    (tmp_path / "events").write_text("a file where the folder should be")
    update = UpdateRecord(valid=True, loss=None, accuracy=None, recall=None, balanced_accuracy=None)
    log.write(update, time=0.0, round=0, buyer=0, sender=-2, receiver=-2)
    with pytest.raises(FlmarketError, match="writing failed"):
        log.close()
    assert "the disk is full" in str(
        disk_error(tmp_path, OSError(28, "No space left on device"), "")
    )


@pytest.mark.parametrize("name", ["owners", "ledger"])
def test_tables_of_owners_with_other_columns_are_refused(tmp_path, name):
    scenario = build_scenario(
        {"rounds": 1, "model": {"name": "none"}, "data": {"name": "synthetic"}}
    )
    run = fm.run(scenario, tmp_path / "run").path
    file, read = run / f"{name}.parquet", getattr(fm, f"read_{name}")
    without_hashes(run)
    whole = pq.read_table(file)
    twice = whole.rename_columns([whole.column_names[1], *whole.column_names[1:]])
    for damaged, words in ((whole.drop_columns(["owner"]), "no column 'owner'"), (twice, "twice")):
        pq.write_table(damaged, file)
        with pytest.raises(InputError, match=words):
            read(run)
