"""SQL about a run reads the run, and nothing else."""

import os

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
