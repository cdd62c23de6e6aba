"""SQL in the browser reads one run: no other file, no writing, not for ever."""

import time

import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.workbench.questions import ask


def test_an_answer_has_columns_and_rows(finished):
    answer = ask(finished, "select round, spent from rounds order by round")
    assert answer["columns"] == ["round", "spent"] and len(answer["rows"]) == 4
    assert not answer["cut"]


def test_rows_are_limited_and_the_answer_says_so(finished):
    answer = ask(finished, "from bid", rows=5)
    assert len(answer["rows"]) == 5 and answer["cut"]


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_text('/etc/passwd')",
        "select * from read_csv('{0}/run.json')",
        "from '{0}/run.json'",
        "select * from glob('/*')",
        "copy (select 1) to '{0}/x.csv'",
        "copy rounds to '{0}/x.parquet'",
        "export database '{0}/x'",
        "attach '{0}/x.db'",
        "create table x as select 1",
        "drop view rounds",
        "set enable_external_access = true",
        "install httpfs",
        "select 1; select 2",
        "select * from duckdb_secrets(); drop view bid",
        "",
        "nonsense",
    ],
)
def test_nothing_but_a_question_about_the_run_is_answered(finished, query):
    before = sorted(path.name for path in finished.iterdir())
    with pytest.raises(InputError, match="SQL"):
        ask(finished, query.format(finished))
    assert sorted(path.name for path in finished.iterdir()) == before


def test_a_python_variable_is_not_a_table(finished):
    secret = {"password": [1]}
    with pytest.raises(InputError):
        ask(finished, "from secret")
    assert secret


def test_a_question_that_takes_too_long_ends(finished):
    began = time.process_time()
    with pytest.raises(InputError, match="longer than"):
        ask(finished, "select sum(a.range * b.range) from range(10000000) a, range(1000000) b",
            seconds=0.3)  # fmt: skip
    assert time.process_time() - began < 30


def test_the_server_answers_with_the_sentence_of_the_error(client):
    refused = client.post("/api/sql", json={"run": "small", "query": "select nothing from rounds"})
    assert refused.status_code == 400 and "nothing" in refused.json()["error"]
    answer = client.post("/api/sql", json={"run": "small", "query": "select count(*) from rounds"})
    assert answer.json()["rows"] == [[4]]
