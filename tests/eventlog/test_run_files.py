"""A finished run is what it says: damage, losses and files of other runs are refused by name."""

import random
import shutil

import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.eventlog import KINDS, parquet_log, write_view
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.storage import atomic_files
from flmarket_sim.storage.sealed_files import HASH_LIST
from tests.support.sealed_json import without_hashes, write_sealed

MARKET = {
    "rounds": 3,
    "data": {"name": "synthetic", "records": 400},
    "owners": {"count": 20},
    "market": {"bidders": 5},
    "model": {"name": "logistic"},
    "log": {"models": "every"},
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return fm.run(build_scenario(MARKET), tmp_path_factory.mktemp("whole") / "run").path


@pytest.fixture
def run(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "run")


def everything(run):
    """All that readers give of a run."""
    info = fm.read_run(run)
    tables = [fm.read_owners(run), fm.read_ledger(run)]
    tables += [fm.read_events(run, kind) for kind in KINDS]
    models = [kept.parameters.tolist() for kept in fm.read_models(run)]
    return info, [table.to_pylist() for table in tables], models


def test_run_json_names_every_file_and_counts_the_kinds_without_events(whole):
    info = fm.read_run(whole)
    files = {str(path.relative_to(whole)) for path in whole.rglob("*") if path.is_file()}
    models = {name for name in files if name.startswith("models")}
    assert set(info["files"]) == files - models - {"run.json"}
    assert len(models) == sum(len(kept) for kept in info["models"].values())
    assert set(info["log"]["kinds"]) == set(KINDS)
    assert not (whole / HASH_LIST).exists()


def refusal(run):
    """What readers say against a run; nothing if they take it."""
    try:
        everything(run)
    except InputError as error:
        return str(error)
    return ""


def test_a_turned_bit_is_refused_by_name_or_changes_nothing(run):
    said, lot = everything(run), random.Random(1)
    files = sorted(path for path in run.rglob("*") if path.is_file())
    for _ in range(25):
        path = lot.choice(files)
        kept = path.read_bytes()
        place = lot.randrange(8 * len(kept))
        content = bytearray(kept)
        content[place // 8] ^= 1 << place % 8
        path.write_bytes(content)
        told = refusal(run)
        assert str(path.relative_to(run)) in told if told else everything(run) == said
        path.write_bytes(kept)
    assert everything(run) == said


@pytest.mark.parametrize("kind", ["payment", "late"])
def test_sql_refuses_a_damaged_kind_that_it_is_asked_about(run, kind):
    for part in run.glob("events/kind=payment/*"):
        part.write_bytes(part.read_bytes()[:-9] + b"!" + part.read_bytes()[-8:])
    if kind == "payment":
        with pytest.raises(InputError, match=r"kind=payment/part-00000.parquet is damaged"):
            fm.sql(run, f"select sum(amount) from {kind}")
    else:
        assert fm.sql(run, f"select count(*) as n from {kind}").to_pylist() == [{"n": 0}]


def test_a_deleted_kind_is_missed_by_all(run, tmp_path):
    shutil.rmtree(run / "events/kind=payment")
    for read in (
        lambda: fm.sql(run, "select count(*) from payment"),
        lambda: fm.read_events(run, "payment"),
        lambda: fm.resume(run),
        lambda: write_view(run, "broker", tmp_path / "view"),
    ):
        with pytest.raises(InputError, match=r"kind=payment/part-00000.parquet is lost"):
            read()


def test_sql_misses_a_deleted_kind_also_in_a_run_without_hashes(run):
    without_hashes(run)
    shutil.rmtree(run / "events/kind=payment")
    with pytest.raises(InputError, match="events of kind 'payment', but 0 are there"):
        fm.sql(run, "select count(*) from payment")


@pytest.mark.parametrize("name", ["owners.parquet", "events/kind=bid/part-00000.parquet"])
def test_files_of_another_run_are_refused(run, tmp_path, name):
    other = fm.run(build_scenario(MARKET | {"seed": 7}), tmp_path / "other").path
    shutil.copy(other / name, run / name)
    read = fm.read_owners if "owners" in name else lambda run: fm.read_events(run, "bid")
    with pytest.raises(InputError, match=f"{name} is damaged"):
        read(run)
    shutil.copy(
        run / "events/kind=bid/part-00000.parquet", run / "events/kind=bid/part-00001.parquet"
    )
    with pytest.raises(InputError, match=r"part-00001.parquet is not a file of this run"):
        fm.read_events(run, "bid")


def test_the_run_json_of_another_run_is_refused(run, tmp_path, monkeypatch):
    other = fm.run(build_scenario(MARKET | {"seed": 7}), tmp_path / "other").path
    shutil.copy(other / "run.json", run / "run.json")
    with pytest.raises(InputError, match=r"ledger\.parquet is damaged"):
        fm.read_run(run)
    monkeypatch.setattr(parquet_log, "EVENTS_PER_PART", 30)
    stopped = [tmp_path / "stopped", tmp_path / "stopped too"]
    for seed, path in enumerate(stopped):
        with pytest.raises(KeyboardInterrupt):
            fm.run(build_scenario(MARKET | {"seed": seed}), path, progress=stop_after(2))
    shutil.copy(stopped[0] / "run.json", stopped[1] / "run.json")
    with pytest.raises(
        InputError, match=r"files\.json and what is beside it are not of one result"
    ):
        fm.read_run(stopped[1])
    fm.run(build_scenario(MARKET), stopped[1], force=True)
    assert everything(stopped[1]) is not None


def test_sql_names_a_table_that_is_not_there(run, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        fm.run(build_scenario(MARKET), tmp_path / "stopped", progress=stop_after(2))
    with pytest.raises(InputError, match=r"ledger\.parquet is not there"):
        fm.sql(tmp_path / "stopped", "select * from ledger")
    with pytest.raises(InputError, match="Table with name nothing does not exist"):
        fm.sql(tmp_path / "stopped", "select * from nothing")


def test_run_json_has_a_hash_of_itself(run):
    path = run / "run.json"
    path.write_text(path.read_text().replace('"seed": ', '"seed": 1'))
    with pytest.raises(InputError, match=r"run\.json is damaged: its content"):
        fm.read_run(run)


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("scenario", {"buyers": 5}, "scenario.buyers"),
        ("log", {"kinds": {"bid": {"rows": "many"}}}, "log.kinds.bid.rows"),
        ("outcome", 3, "outcome"),
        ("files", {"owners.parquet": "abc"}, "files.owners.parquet"),
    ],
)
def test_run_json_with_a_wrong_type_is_refused_by_its_place(run, key, value, place):
    write_sealed(run / "run.json", fm.read_run(run) | {key: value})
    with pytest.raises(InputError, match=rf"run\.json is damaged: '{place}'"):
        fm.read_events(run, "bid")


def test_keys_of_later_versions_are_let_through_and_missing_ones_are_named(run):
    info = fm.read_run(run)
    write_sealed(run / "run.json", info | {"weather": "fine"})
    assert fm.read_run(run)["weather"] == "fine"
    write_sealed(run / "run.json", {key: info[key] for key in info if key != "outcome"})
    with pytest.raises(InputError, match=r"run\.json does not describe a run: it has no 'outcome'"):
        fm.Run(run).summary()


def stop_after(number):
    def progress(done, total):
        if done == number:
            raise KeyboardInterrupt

    return progress


def test_the_files_of_an_unfinished_run_are_checked_too(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_log, "EVENTS_PER_PART", 30)
    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        fm.run(build_scenario(MARKET), run, progress=stop_after(2))
    said = everything_unfinished(run)
    for name in ("owners.parquet", "events/kind=bid/part-00000.parquet", HASH_LIST):
        path = run / name
        kept = path.read_bytes()
        path.write_bytes(kept[:-20] + bytes([kept[-20] ^ 1]) + kept[-19:])
        with pytest.raises(InputError, match=f"{name} is damaged"):
            everything_unfinished(run)
        path.write_bytes(kept)
    assert everything_unfinished(run) == said
    fm.resume(run)
    assert not (run / HASH_LIST).exists() and fm.read_run(run)["outcome"] == "finished"


def everything_unfinished(run):
    tables = [fm.sql(run, "select * from owners"), fm.sql(run, "select * from bid")]
    return [table.to_pylist() for table in tables]


def test_new_directories_are_on_the_disk_before_the_journal_goes(tmp_path, monkeypatch):
    synced = []

    def remembered(path):
        synced.append((path, any((tmp_path / "run/events").glob("journal-*"))))
        return kept(path)

    kept = atomic_files.sync
    monkeypatch.setattr(parquet_log, "sync", remembered)
    fm.run(build_scenario(MARKET), tmp_path / "run")
    assert (tmp_path / "run/events", True) in synced
