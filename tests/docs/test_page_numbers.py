"""Numbers on pages come from stored results, or stand in a mark that says where they come from."""

import json

import pytest

from docs import false_names, findings, numbers, page_numbers
from docs.page_numbers import FalseSentence, page, unmarked

BY_COMMAND = ("reproduction.md", "mechanisms.md")  # written as a whole by a command


@pytest.mark.parametrize("path", page_numbers.PAGES, ids=lambda path: path.name)
def test_every_number_is_current_and_every_condition_holds(path):
    text = path.read_text()
    assert page(text) == text, "run 'python -m docs.page_numbers'"


def test_the_tables_of_learned_auctions_are_those_that_were_kept():
    text = numbers.PAGE.read_text()
    assert numbers.page(text) == text, "run 'python -m docs.numbers --page'"
    assert text.count("| seq-price |") == 2


def test_the_tables_of_false_names_are_those_that_were_kept():
    text = false_names.PAGE.read_text()
    assert false_names.page(text) == text, "run 'python -m docs.false_names --page'"
    assert text.count("| record-price | 2 |") == 3


@pytest.mark.parametrize("path", page_numbers.PAGES, ids=lambda path: path.name)
def test_no_measured_number_stands_outside_a_mark(path):
    if path.name not in BY_COMMAND:
        assert unmarked(path.read_text()) == []


@pytest.fixture
def stored(tmp_path, monkeypatch):
    rows = [
        {"auction": "a", "gain": 0.25, "gain_low": 0.2, "gain_high": 0.3},
        {"auction": "b", "gain": 0.5, "gain_low": 0.4, "gain_high": 0.6},
    ]
    (tmp_path / "study.json").write_text(json.dumps({"rows": rows}))
    monkeypatch.setattr(page_numbers, "FOLDERS", (tmp_path,))
    page_numbers._stored.cache_clear()
    yield
    page_numbers._stored.cache_clear()


def test_a_value_replaces_what_stood_there(stored):
    text = "It gains <!--= i('study','gain',auction='a') -->old<!--/--> on average."
    assert page(text).endswith("-->0.25 [0.20, 0.30]<!--/--> on average.")
    both = "<!--= span('study','gain') --><!--/-->"
    assert "0.25 to 0.50" in page(both)


def test_a_sentence_that_the_results_contradict_is_refused(stored):
    with pytest.raises(FalseSentence, match="contradict"):
        page("<!--? v('study','gain',auction='a') > 1 --> It gains everything.")
    with pytest.raises(FalseSentence, match="0 rows"):
        page("<!--= n('study','gain',auction='c') -->x<!--/-->")
    with pytest.raises(FalseSentence, match="no stored results"):
        page("<!--= n('other','gain',auction='c') -->x<!--/-->")


def test_a_naked_number_is_noticed():
    text = "It gains 0.42 of cost.\n\n    flmarket --set x=0.25\n\nIt took `0.5` and 3 s."
    assert unmarked(text) == ["It gains 0.42 of cost.", "It took  and 3 s."]
    assert unmarked("<!-- given: the paper -->\n0.0556\n<!-- end -->\n95 % intervals") == []


def test_findings_of_every_study_are_stored():
    for name in findings.STUDIES:
        result = json.loads((findings.RESULTS / f"{name}.json").read_text())
        assert result["rows"] and result["intervals"] and result["sentences"]
