"""SQL about a run reads the run, and nothing else."""

import os
import shutil

import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from tests.support.commands_here import called

SMALL = {"rounds": 2, "owners": {"count": 20}, "model": {"name": "none"}}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run in a folder whose name has what SQL and DuckDB's patterns would take for signs."""
    folder = tmp_path_factory.mktemp("a 'quoted' [set] of * and ?")
    (folder / "secret.csv").write_text("word\nswordfish\n")
    return fm.run(fm.Scenario(**SMALL), folder / "run")


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_text('{0}/secret.csv')",
        "from read_csv('{0}/secret.csv')",
        "from '{0}/secret.csv'",
        "select * from glob('{0}/*')",
        "from read_blob('/etc/hostname')",
        "copy rounds to '{0}/stolen.csv'",
        "copy (select 1) to '{0}/run/owners.parquet' (format parquet)",
        "explain analyze copy (select 1) to '{0}/run/owners.parquet' (format parquet)",
        "export database '{0}/stolen'",
        "attach '{0}/stolen.db'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set allowed_directories = ['/']",
        "reset lock_configuration",
        "pragma memory_limit = '1GB'",
        "drop view rounds",
        "create table mine as select 1",
        "select 1; select 2",
        "from run",
        "",
    ],
)
def test_nothing_but_a_question_about_the_run_is_answered(run, query):
    folder = run.path.parent
    before = contents(folder)
    with pytest.raises(InputError, match="SQL"):
        run.sql(query.format(str(folder).replace("'", "''")))
    assert contents(folder) == before


@pytest.mark.parametrize(
    "query", ["select count(*) as n from rounds", "from owners", "describe bid", "show tables"]
)
def test_questions_about_the_run_are_answered_from_every_place(run, query, monkeypatch):
    answer = run.sql(query).to_pylist()
    monkeypatch.chdir(run.path.parent)
    assert answer == fm.sql("run", query).to_pylist() != []
    monkeypatch.chdir(run.path)
    assert answer == fm.sql(".", query).to_pylist() == fm.sql("../run", query).to_pylist()


PART = "events/kind=payment/part-00000.parquet"


@pytest.mark.parametrize("name", [PART, "owners.parquet", "ledger.parquet"])
def test_a_file_that_the_query_names_by_its_path_is_checked(run, tmp_path, name):
    copy = shutil.copytree(run.path, tmp_path / "run")
    query = f"select count(*) as n from read_parquet('{copy.as_posix()}/{name}')"
    assert fm.sql(copy, query).to_pylist()[0]["n"] > 0
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{name} is damaged"):
        fm.sql(copy, query)


@pytest.mark.parametrize(
    "path",
    ["'{0}/events/ki' || 'nd=payment/part-00000.parquet'", "'{0}/**'", "'{0}/*/*/*.parquet'"],
)
def test_no_path_leads_to_a_damaged_file(run, tmp_path, path):
    copy = shutil.copytree(run.path, tmp_path / "run")
    content = bytearray((copy / PART).read_bytes())
    content[len(content) // 3] ^= 1
    (copy / PART).write_bytes(content)
    with pytest.raises(InputError, match=r"is damaged|reads this run and no other file"):
        fm.sql(copy, f"select * from read_parquet({path.format(copy.as_posix())})")
    assert fm.sql(copy, "select count(*) as n from rounds").to_pylist() == [{"n": 2}]


@pytest.mark.parametrize(
    "query",
    [
        "select * from information_schema.columns",
        "from duckdb_views()",
        "with bids as (from bid) select count(*) from bids join payment using (round)",
        "select (select count(*) from ledger) as n from rounds",
        "summarize bid",
        "from duckdb_columns()",
        "from main.bid",
        "from memory.main.bid",
        'select * from "Payment"',
        "show payment",
        "select round from bid union all select round from payment",
    ],
)
def test_questions_about_tables_and_over_several_of_them_are_answered(run, query):
    assert run.sql(query).num_rows > 0


def test_a_link_that_leads_to_the_run_leads_to_its_answers(run, tmp_path):
    os.symlink(run.path, tmp_path / "link")
    assert fm.sql(tmp_path / "link", "select count(*) as n from rounds").to_pylist() == [{"n": 2}]


def test_unsafe_opens_the_room(run):
    place = run.path.parent.as_posix().replace("'", "''")
    query = f"from read_csv('{place}/secret.csv')"
    assert run.sql(query, unsafe=True).to_pylist() == [{"word": "swordfish"}]
    assert "swordfish" in called("sql", run, query, "--unsafe").out
    refused = called("sql", run, query)
    assert refused.code == 2 and "no other file; --unsafe allows it" in refused.err
