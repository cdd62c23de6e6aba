"""Every sentence that a study prints is computed from the rows that it names.

Each study concludes from made-up results, twice, with other numbers. Every number in a sentence
must then be a number of the rows of the same conclusion, and no sentence may survive the change.
"""

import math
import re

import pytest

from flmarket_sim.plugins import registry
from flmarket_sim.scenario.scenario_file import load_scenario
from flmarket_sim.studies.study_run import study_of
from tests.support.made_up_findings import CASES, ENDS, conclusion
from tests.support.paths import ROOT

__all__ = ["ENDS"]

NUMBER = re.compile(r"(?<![\w.\-])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?%?(?![\w\-]*[a-z]-)")


def numbers_of(rows):
    return [
        float(value)
        for row in rows
        for value in row.values()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    ]


def stands_for(token, value):
    """Whether a printed number is this value, rounded as printed."""
    plain = token.rstrip("%")
    digits = len(plain.partition(".")[2].partition("e")[0])
    scale = 0.01 if token.endswith("%") else 1.0
    magnitude = 10 ** int(plain.partition("e")[2] or 0)
    rounding = 0.5 * 10**-digits * scale * magnitude
    return abs(float(plain) * scale - value) <= rounding * (1 + 1e-6)


def foreign_numbers(sentence, known):
    return [t for t in NUMBER.findall(sentence) if not any(stands_for(t, x) for x in known)]


@pytest.mark.parametrize("name", CASES)
def test_every_number_of_a_sentence_is_one_of_its_rows(name):
    case = CASES[name]
    for seed in (1, 2):
        finding = conclusion(case, seed)
        known = numbers_of(finding.rows) + case.derived(finding.rows)
        assert finding.sentences and finding.intervals
        for sentence in finding.sentences:
            assert NUMBER.findall(sentence) and not foreign_numbers(sentence, known), sentence


@pytest.mark.parametrize("name", CASES)
def test_no_sentence_survives_other_rows(name):
    case = CASES[name]
    first, second = (conclusion(case, seed).sentences for seed in (1, 2))
    assert len(first) == len(second) and not set(first) & set(second)


def test_the_check_notices_a_number_that_is_not_in_the_rows():
    finding = conclusion(CASES["coalition"], 1)
    known = numbers_of(finding.rows)
    assert foreign_numbers(finding.sentences[0] + " and 0.1234", known) == ["0.1234"]


def test_every_study_is_among_them():
    in_league = {"league"}  # its markets are fixed: tests/league has its sentences
    assert set(CASES) == set(registry.studies.names()) - in_league


def test_rest_is_said_of_markets_at_rest_only():
    case = CASES["rest-point"]
    results = case.results(3)
    for (row,) in results:
        row |= {"rest": 0, "valid_at_rest": 0, "error_ratio_at_rest": float("nan")}
    scenario = load_scenario(ROOT / "scenarios/studies/rest-point.toml", case.settings)
    for sentence in study_of(scenario).conclude(scenario, results).sentences:
        assert "0 of 100 markets come to rest; no error at rest can be given" in sentence
        assert "settled or not" in sentence
