"""Verdicts on the paper's claims follow their rows: supporting rows confirm, others contradict.

Every claim is judged twice, by rows made to support it and by rows made to contradict it. The
numbers of its evidence must be numbers of the rows.
"""

import itertools

import numpy as np
import pytest

from flmarket_sim.paper.claims import CLAIMS, verdicts
from flmarket_sim.paper.differences import why
from flmarket_sim.paper.guarantees import PAPER
from flmarket_sim.paper.reproduction import RESULTS, experiment
from flmarket_sim.paper.verdicts import AUTHORS, BEYOND
from tests.studies.test_sentences import ENDS, NUMBER, foreign_numbers, numbers_of

MARKETS, RULES = ("IID", "non-IID"), ("opt-aggr", "convl-aggr")
NETS = tuple(
    f"{published}{name}"
    for published in ("", "published-")
    for name in ("regretnet", "m-regretnet", "dm-regretnet")
)
MEANT = (5, 1, 10, 15, 100, 0.05, 0.01, 0.1, 0.15)  # levels of confidence and tolerances in texts


def spread(name, mean, half=0.001):
    return dict(zip((name + end for end in ENDS), (mean, mean - half, mean + half), strict=True))


def by_budget(good, rng):
    rows = []
    for market, rule, auction, factor in itertools.product(MARKETS, RULES, NETS, (1.0, 2.0)):
        dm = "dm-" in auction
        error = (1.0 if dm == good else 3.0) * (0.5 if (factor == 2.0) == good else 1.0)
        invalid = (0.0 if good else 0.07) if dm else (0.3 if good else 0.0)
        row = {"market": market, "rule": rule, "auction": auction, "budget_factor": factor}
        row |= spread("error_bound", error + rng.uniform(0, 0.01))
        row |= spread("saving", (0.2 if good else -0.2) + rng.uniform(0, 0.01))
        row |= spread("invalid_rate", invalid) | spread("surplus_share", rng.uniform(0.1, 0.4))
        row |= spread("error_over_first_best", rng.uniform(6, 9))
        row |= {"spent_share": rng.uniform(0.5, 0.9), "cost_share": rng.uniform(0.1, 0.4)}
        rows.append(row)
    return rows


def accuracy(good, rng):
    rows = []
    for market, rule, auction in itertools.product(MARKETS, RULES, NETS):
        dm = "dm-" in auction
        row = {"market": market, "rule": rule, "auction": auction, "round": 100}
        lead = rng.uniform(0.05, 0.1) * (-1 if good else 1)
        row |= spread("over_baseline", 0.0 if dm else lead)
        saved = rng.uniform(0.05, 0.1) * (1 if good else -1)
        row |= spread("over_last_rule", saved if rule == RULES[0] else 0.0)
        rows.append(row | spread("accuracy", rng.uniform(0.3, 0.7)))
    return rows


def levels(good, rng):
    measures = ("as_published", "axis_mended", "corrected", "probed", "ir_as_published")
    rows = []
    for market, (place, m) in itertools.product(MARKETS, enumerate((1, 2, 4))):
        row = {"market": market, "levels": m, "networks": AUTHORS, "instances": 10}
        height = 0.9 - 0.2 * place if good else 0.2 + 0.2 * place
        for name in measures:
            row |= spread(name, height + rng.uniform(0, 0.01))
        rows.append(row | {"privacy_bought": rng.uniform(0.5, 0.6)})
    return rows


def guarantees(good, rng):
    rows = []
    for (market, name, rule), (regret, ir) in PAPER.items():
        dm = name == "dm-regretnet"
        row = {"market": market, "auction": f"published-{name}", "rule": rule if dm else "any"}
        row |= {"paper_regret": regret, "paper_ir": ir, "gaining": rng.uniform(0.3, 0.9)}
        off = 1.01 if good else 2.0
        low = regret * 0.9 if good else (0.95 if dm else 0.2)
        row |= spread("as_published", regret * off if good else (1.5 if dm else 0.1))
        row |= spread("ir_as_published", ir * off, 1e-5)
        row |= spread("axis_mended", low) | spread("corrected", rng.uniform(0.2, 0.4))
        row |= spread("probe", low) | {"probe_median": low / 2}
        rows.append(row | ({} if dm else spread("luck", rng.uniform(0.6, 0.7))))
    return rows


ROWS = {
    "error-bound": by_budget,
    "invalid-gradients": by_budget,
    "aggregation": by_budget,
    "surplus": by_budget,
    "accuracy": accuracy,
    "levels": levels,
    "guarantees": guarantees,
}


def judged(name, good, seed=0):
    rows = ROWS[name](good, np.random.default_rng(seed))
    return rows, verdicts(name, rows)


def test_every_result_and_claim_is_walked():
    assert set(ROWS) == set(RESULTS) == set(CLAIMS)


@pytest.mark.parametrize("name", ROWS)
def test_rows_that_support_a_claim_confirm_it_and_others_refute_it(name):
    for good, outcome in ((True, "holds"), (False, "does not hold")):
        _, ruled = judged(name, good)
        assert len(ruled) >= len(CLAIMS[name])
        for verdict in ruled:
            if good and verdict.claim.startswith("No misreport gains more"):
                assert verdict.outcome == "cannot be told apart"  # a search cannot confirm it
            else:
                assert verdict.outcome in (outcome, BEYOND), (verdict.claim, verdict.outcome)


@pytest.mark.parametrize("name", ROWS)
def test_the_numbers_of_the_evidence_are_those_of_the_rows(name):
    for seed in (1, 2):
        rows, ruled = judged(name, True, seed)
        known = [*numbers_of(rows), *MEANT, *range(len(rows) + 1)]
        known += [sum(part) / len(part) for part in _groups(rows)]
        for verdict in ruled:
            assert NUMBER.findall(verdict.evidence), verdict
            assert not foreign_numbers(verdict.evidence, known), verdict.evidence


def _groups(rows):
    """The errors of each auction in each market under OptAggr, whose mean a sentence gives."""
    cells = {}
    for row in rows:
        if row.get("rule") == "opt-aggr" and "error_bound" in row:
            cells.setdefault((row["market"], row["auction"]), []).append(row["error_bound"])
    return list(cells.values())


@pytest.mark.parametrize("name", ROWS)
def test_no_evidence_survives_contradicting_rows(name):
    first, second = (
        {(v.claim, v.evidence) for v in judged(name, good, seed)[1]}
        for seed, good in ((1, True), (2, False))
    )
    assert not first & second


@pytest.mark.parametrize("name", ["error-bound", "guarantees"])
def test_reasons_name_numbers_of_the_rows(name):
    options = experiment(name, quick=False).study.options
    sentences = []
    for seed in (1, 2):
        rows = ROWS[name](True, np.random.default_rng(seed))
        rng = np.random.default_rng(seed)
        for row in rows:
            if name == "error-bound":
                row |= spread("error_bound", rng.uniform(150.0, 900.0))
            else:
                row |= spread("as_published", rng.uniform(1.0, 2.0))
        sentences.append(why(name, rows, options)[1:])
        known = [*numbers_of(rows), *MEANT, *range(len(rows) + 1), *_departures(rows)]
        for sentence in sentences[-1]:
            assert not foreign_numbers(sentence, known), sentence
    assert sentences[0] and not set(sentences[0]) & set(sentences[1])


def _departures(rows):
    """By how much a measured number departs from the paper's, as a share and as a multiple."""
    return [
        row[key] / row[paper] - less
        for row in rows
        for key, paper in (("as_published", "paper_regret"), ("ir_as_published", "paper_ir"))
        if paper in row
        for less in (0, 1)
    ]
