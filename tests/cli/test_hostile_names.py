"""What a file holds cannot steer the terminal: no colours, no cursor, no turned text, no line."""

import json
import unicodedata

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import flmarket_sim as fm
from flmarket_sim.cli.output import progress
from flmarket_sim.errors import one_line, printable
from tests.support.commands_here import called

NASTY = "\x1b[31mred\x1b]0;title\x07\x9b2J\u202egnp.exe\u2066\u200b\r\x08\x7f"
SMALL = {"rounds": 1, "owners": {"count": 20}, "model": {"name": "none"}}


def steering(text):
    """The signs of a text that a terminal would act on, by the slow way: their categories."""
    return [
        sign
        for sign in text
        if unicodedata.category(sign) in ("Cc", "Cf", "Zl", "Zp") and sign not in "\n\t\u200c\u200d"
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return fm.run(fm.Scenario(**SMALL), tmp_path_factory.mktemp("runs") / "run")


def test_every_sign_that_steers_is_escaped_and_every_other_stays():
    every = "".join(map(chr, (*range(0xD800), *range(0xE000, 0xF0000))))
    rare = set(steering(printable(every)))
    assert all(ord(sign) > 0x5FF and unicodedata.category(sign) == "Cf" for sign in rare)
    assert len(rare) < 50, "marks of single scripts and of musical notation"
    kept = "plain, é, 中文, 🙂, e\u0301, \t\n"
    assert printable(kept) == kept
    assert one_line("two\nlines\t") == "two\\nlines\\t" and steering(one_line(NASTY)) == []


def test_cells_and_heads_of_an_answer_are_escaped(run):
    query = f"""select '{NASTY} and' || chr(10) || 'more' as "head {NASTY}" """
    for options in ([], ["--wide"]):
        shown = called("sql", run, query, *options)
        assert shown.code == 0 and steering(shown.out) == [] and len(shown.out.splitlines()) < 20
        assert "\\x1b[31mred" in shown.out and "\\nmore" in shown.out
    assert steering(repr(run.sql(query))) == []


def test_json_keeps_the_value_and_is_escaped(run):
    shown = called("sql", run, f"select '{NASTY}' as v", "--json")
    assert steering(shown.out) == [] and json.loads(shown.out) == [{"v": NASTY}]


def test_errors_are_escaped_also_with_a_traceback(run):
    for options in ([], ["-v"]):
        refused = called("sql", run, f"select {NASTY}", *options)
        assert refused.code == 2 and steering(refused.err) == []


def test_a_file_name_takes_one_line_of_an_error(tmp_path):
    name = f"{tmp_path}/a\nflmarket: all is well.toml"
    refused = called("validate", name)
    assert refused.code == 2 and len(refused.err.splitlines()) == 1, refused.err


def test_names_in_a_scenario_are_escaped(tmp_path):
    file = tmp_path / "scenario.toml"
    name = "\u202e\x9b[bold]"
    file.write_text(f'name = "{name}"\nrounds = 1\nowners.count = 20\nmodel.name = "none"\n')
    for command in (["validate", file], ["run", file, "--out", tmp_path / "out"]):
        ended = called(*command)
        assert ended.code == 0 and steering(ended.out + ended.err) == [], ended
    assert steering(repr(fm.Run(tmp_path / "out"))) == []


def test_markup_in_a_name_is_no_markup_of_a_progress_bar():
    with progress("[/red] [bold]") as report:
        report(1, 2)


def test_a_study_with_hostile_texts_is_shown_as_text(tmp_path):
    rows = pa.table({"auction": [NASTY], "value": [1.0]})
    folder = tmp_path / "study"
    folder.mkdir()
    pq.write_table(rows, folder / "rows.parquet")
    (folder / "study.json").write_text(json.dumps({"sentences": 5, "scenario": {}}))
    refused = called("report", folder, "--out", tmp_path / "page.html")
    assert "not foreseen" not in refused.err, refused.err


@pytest.mark.parametrize(
    "value", ["date '200000-01-01'", "timestamp '200000-01-01'", "[date 'infinity']"]
)
def test_a_date_that_python_does_not_know_is_one_paragraph(run, tmp_path, value):
    for options in ([], ["--json"], ["--out", tmp_path / "table.md"]):
        refused = called("sql", run, f"select {value} as day", *options)
        assert refused.code == 2 and "not foreseen" not in refused.err, refused.err
    assert called("sql", run, f"select cast({value} as varchar) as day").code == 0


def test_a_query_that_is_no_text_is_one_paragraph(run):
    refused = called("sql", run, "select '\udcff'")
    assert refused.code == 2 and "not valid text" in refused.err
