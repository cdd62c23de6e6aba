"""Every sentence that a study prints is computed from the rows that it names.

Each study concludes from made-up results, twice, with other numbers. Every number in a sentence
must then be a number of the rows of the same conclusion, and no sentence may survive the change.
"""

import math
import re
from dataclasses import dataclass, field

import numpy as np
import pytest

from flmarket_sim.plugins import registry
from flmarket_sim.scenario.scenario_file import load_scenario
from flmarket_sim.studies.study_run import study_of
from tests.support.paths import ROOT

ENDS = ("", "_low", "_high")
NUMBER = re.compile(r"(?<![\w.\-])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?%?(?![\w\-]*[a-z]-)")


@dataclass
class Case:
    """A study with made-up results: the columns of a task's row, and the tasks.

    `keys` are the places (auction, budget factor, ...) of each row; `estimates` have intervals;
    `counts` are whole numbers; `derived` are numbers that a sentence takes from several rows.
    """

    scenario: str
    keys: list[dict]
    estimates: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    derived: object = field(default=lambda rows: [])

    def results(self, seed):
        rng = np.random.default_rng(seed)

        def row(place):
            made = dict(place)
            for name in self.estimates:
                mean, half = rng.uniform(0.05, 0.95), rng.uniform(0.01, 0.04)
                made |= dict(
                    zip((name + end for end in ENDS), (mean, mean - half, mean + half), strict=True)
                )
            made |= {name: float(rng.uniform(0.05, 0.95)) for name in self.numbers}
            return made | {name: int(rng.integers(3, 90)) for name in self.counts}

        return [[row(place)] for place in self.keys]


TWO = ("all-in", "fair-query")
PAIR = 'study.auctions=["all-in", "fair-query"]'


def means_by_auction(*columns):
    def derived(rows):
        return [
            float(np.mean([row[column] for row in rows if row["auction"] == name]))
            for column in columns
            for name in {row["auction"] for row in rows}
        ]

    return derived


CASES = {
    "misreport-gain": Case(
        "studies/misreport-gain",
        [{"auction": a, "budget_factor": f, "markets": 7} for a in TWO for f in (0.5, 1.0)],
        ("gain_over_cost", "share_gaining"),
        settings=(PAIR,),
        derived=means_by_auction("gain_over_cost", "share_gaining"),
    ),
    "rest-point": Case(
        "studies/rest-point",
        [{"auction": a, "markets": 100} for a in TWO],
        ("error_truth", "bound_of_data_end", "error_ratio", "error_ratio_at_rest"),
        counts=("rest", "cycle", "unsettled", "valid", "valid_at_rest"),
        settings=(PAIR,),
        derived=lambda rows: [30],  # sweeps, an option
    ),
    "strategic-share": Case(
        "studies/strategic-share",
        [{"auction": a, "share": s, "seed": k} for k in (0, 1) for a in TWO for s in (0.0, 1.0)],
        numbers=(
            "error_bound",
            "bound_of_data",
            "true_error",
            "accuracy",
            "spent_share",
            "surplus_share",
            "invalid",
        ),
        settings=(PAIR, "study.shares=[0.0, 1.0]", "study.seeds=2"),
    ),
    "learners": Case(
        "studies/learners",
        [{"auction": a, "behaviour": "exp3", "rounds_until": 300} for a in TWO for _ in range(2)],
        numbers=("asked_factor", "budget_share", "advantage", "bound_of_data"),
        settings=(PAIR, 'study.behaviours=["exp3"]'),
    ),
    "coalition": Case(
        "studies/coalition",
        [{"auction": a, "members": m, "markets": 9} for a in TWO for m in (1, 2)],
        ("gain_together", "gain_alone"),
        settings=(PAIR, "study.sizes=[1, 2]"),
    ),
    "false-names": Case(
        "studies/false-names",
        [{"auction": a, "names": 2, "markets": 9} for a in TWO],
        ("gain_names", "gain_lie", "gain_both"),
        settings=(PAIR, "study.names=[2]"),
    ),
    "arbitrage": Case(
        "studies/arbitrage",
        [{"auction": a, "owners": o, "purchases": 2} for a in TWO for o in ("remember", "forget")],
        ("budget_ratio", "spending_ratio"),
        settings=(PAIR, "study.purchases=[2]"),
    ),
    "error-by-budget": Case(
        "paper/error-bound",
        [
            {"market": m, "auction": a, "rule": r, "budget_factor": f}
            for m in ("IID", "non-IID")
            for a in TWO
            for r in ("opt-aggr", "convl-aggr")
            for f in (0.5, 1.0)
        ],
        ("error_bound", "saving", "surplus_share", "invalid_rate", "error_over_first_best"),
        settings=(PAIR,),
        derived=lambda rows: [
            float(np.mean([row["error_bound"] for row in rows if _cell(row) == cell]))
            for cell in {_cell(row) for row in rows}
        ],
    ),
    "accuracy": Case(
        "paper/accuracy",
        [
            {"market": m, "auction": a, "rule": "opt-aggr", "seed": k, "round": 100}
            for m in ("IID", "non-IID")
            for a in TWO
            for k in (0, 1)
        ],
        numbers=("accuracy", "error_bound", "true_error", "invalid"),
        settings=(PAIR,),
    ),
}


def _cell(row):
    return row["market"], row["auction"], row["rule"]


def conclusion(case, seed):
    scenario = load_scenario(ROOT / f"scenarios/{case.scenario}.toml", case.settings)
    scenario.study.options.pop("quick", None)
    return study_of(scenario).conclude(scenario, case.results(seed))


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
    elsewhere = {"guarantees", "levels", "published-regret"}  # tests/paper/test_claim_sentences.py
    elsewhere |= {"pipelines", "buyers-curve", "regimes", "bargains"}  # test_model_studies.py
    elsewhere |= {"second-best"}  # test_near_the_floor.py
    assert set(CASES) | elsewhere == set(registry.studies.names())


def test_rest_is_said_of_markets_at_rest_only():
    case = CASES["rest-point"]
    results = case.results(3)
    for (row,) in results:
        row |= {"rest": 0, "valid_at_rest": 0, "error_ratio_at_rest": float("nan")}
    scenario = load_scenario(ROOT / "scenarios/studies/rest-point.toml", case.settings)
    for sentence in study_of(scenario).conclude(scenario, results).sentences:
        assert "0 of 100 markets come to rest; no error at rest can be given" in sentence
        assert "settled or not" in sentence
