"""Every study with made-up results: the finding that it concludes from them."""

from dataclasses import dataclass, field

import numpy as np

from flmarket_sim.paper.verdicts import OURS
from flmarket_sim.scenario.scenario_file import load_scenario
from flmarket_sim.studies.pipelines import CONSTANT
from flmarket_sim.studies.study_run import study_of
from tests.support.paths import ROOT

ENDS = ("", "_low", "_high")


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
    "cheating": Case(
        "studies/cheating",
        [
            {"seed": k, "auction": a, "loss": 1.0, "check": c, "cheat": cheat}
            for k in (0, 1, 2)
            for a in TWO
            for c in ("variance", "csra")
            for cheat in ("stale", "sign-flip")
        ],
        numbers=(
            "gain",
            "caught",
            "false_accused",
            "kept_privacy",
            "honest_pay",
            "error",
            "accuracy",
        ),
        settings=(PAIR, 'study.checks=["variance", "csra"]'),
        derived=lambda rows: [0, len(TWO)],  # cells in which honesty is best, of the check's cells
    ),
    "detection": Case(
        "studies/detection",
        [
            {"seed": k, "market": f"D = {d}", "dimension": d, "loss": loss, "check": check}
            | {"false_accused": level, "bound": 0.1 * loss}
            for k in (0, 1, 2)
            for d in (10, 650)
            for loss in (1.0, 8.0)
            for check in ("variance", "csra")
            for level in (0.05, 0.5)
        ],
        numbers=("caught",),
        settings=('study.checks=["variance", "csra"]',),
        derived=lambda rows: [5],  # percent of honest messages
    ),
    "cheat-share": Case(
        "studies/cheat-share",
        [
            {"seed": k, "cheat": cheat, "pipeline": pipeline, "share": share}
            for k in (0, 1, 2)
            for cheat in ("sign-flip", "stale")
            for pipeline in ("weighted sum", "length checked")
            for share in (0.0, 0.2, 0.4)
        ],
        numbers=("accuracy", "true_error"),
        settings=(
            'study.cheats=[{name="sign-flip"}, {name="stale"}]',
            'study.pipelines=[{name="weighted sum"}, {name="length checked"}]',
            "study.shares=[0.2, 0.4]",
        ),
    ),
    "misreport-gain": Case(
        "studies/misreport-gain",
        [{"auction": a, "budget_factor": f, "markets": 7} for a in TWO for f in (0.5, 1.0)],
        ("gain_over_cost", "share_gaining", "gain_over_cost_median"),
        settings=(PAIR,),
        derived=means_by_auction("gain_over_cost", "share_gaining"),
    ),
    "rest-point": Case(
        "studies/rest-point",
        [{"auction": a, "markets": 100} for a in TWO],
        ("error_truth", "bound_of_data_end", "error_ratio", "error_ratio_at_rest"),
        numbers=("sweeps", "liars", "invalid_at_end"),
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
        ("gain_together", "gain_alone", "gain_together_median"),
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
        counts=("never_reached",),
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
        ("spent_share", "cost_share", "capped_error"),
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
    "pipelines": Case(
        "studies/model-quality",
        [
            {"market": "IID", "pipeline": p, "seed": k, "round": 100}
            for p in ("as published", "no noise", CONSTANT)
            for k in (0, 1)
        ],
        numbers=(
            "accuracy",
            "balanced_accuracy",
            "noiseless_accuracy",
            "noiseless_balanced_accuracy",
            "coordinate_bound",
            "vector_bound",
            "true_error",
            "true_over_vector",
            "true_over_coordinate",
            "spent_share",
            "privacy_sold",
        ),
        settings=(
            'study.markets=[{name="IID"}]',
            'study.pipelines=[{name="as published"}, {name="no noise"}]',
        ),
    ),
    "buyers-curve": Case(
        "studies/buyers-curve",
        [
            {"pipeline": "plain", "auction": a, "budget_factor": f, "seed": k}
            for a in TWO
            for f in (0.1, 2.0)
            for k in (0, 1)
        ],
        numbers=(
            "accuracy",
            "balanced_accuracy",
            "vector_bound",
            "true_error",
            "spent",
            "privacy_sold",
            "constant_guess",
            "constant_guess_balanced",
            "noiseless_accuracy",
            "noiseless_balanced_accuracy",
        ),
        settings=(PAIR, "study.factors=[0.1, 2.0]", 'study.pipelines=[{name="plain"}]'),
    ),
    "regimes": Case(
        "studies/regimes",
        [
            {"auction": a, "rule": r, "kappa": kappa}
            for kappa in (8.0, 4920.0)
            for a in TWO
            for r in ("opt-aggr", "uniform")
        ],
        ("over_everything", "over_everything_median", "over_everything_trimmed"),
        ("invalid",),
        settings=(PAIR, "study.kappas=[8.0, 4920.0]"),
    ),
    "bargains": Case(
        "studies/bargains",
        [{"kappa": k, "group": g} for k in (8.0, 80.0) for g in ("smallest", "middle", "largest")],
        ("money_share", "sold_share", "records_share"),
        settings=("study.kappas=[8.0, 80.0]",),
    ),
    "second-best": Case(
        "studies/second-best",
        [
            {"kappa": 8.0, "market": k, "factor": 0.1 + 0.12 * k, "population": float(k % 4)}
            for k in range(16)
        ],
        numbers=(*TWO, "floor", "lower", "average", "first-best"),
        settings=(PAIR, "study.kappas=[8.0]"),
    ),
    "guarantees": Case(
        "paper/guarantees",
        [
            {"market": m, "auction": a, "rule": "opt-aggr"}
            for m in ("IID", "non-IID")
            for a in ("regretnet", "dm-regretnet")
        ],
        (
            *(
                f"{gain}{kind}"
                for gain in ("as_published", "axis_mended", "luck", "corrected", "probe")
                for kind in ("", "_median", "_trimmed")
            ),
            "ir_as_published",
            "ir_tested_on",
            "ir_violation",
        ),
        ("gaining",),
    ),
    "levels": Case(
        "paper/levels",
        [
            {"market": m, "networks": OURS, "levels": levels}
            for m in ("IID", "non-IID")
            for levels in (1, 16)
            for _ in range(2)
        ],
        numbers=(
            "as_published",
            "axis_mended",
            "corrected",
            "probed",
            "ir_violation",
            "ir_as_published",
            "privacy_bought",
            "error_bound",
            "invalid",
        ),
        settings=("study.levels=[1, 16]",),
    ),
    "published-regret": Case(
        "studies/published-regret",
        [
            {"auction": a, "measured_by": m, "markets": 60}
            for a in ("regretnet", "dm-regretnet")
            for m in ("as published", "axis mended", "probe")
        ],
        ("gain_over_cost", "gain_over_cost_median", "gain_over_cost_trimmed"),
        settings=('study.auctions=["regretnet", "dm-regretnet"]',),
    ),
}


def _cell(row):
    return row["market"], row["auction"], row["rule"]


def conclusion(case, seed):
    scenario = load_scenario(ROOT / f"scenarios/{case.scenario}.toml", case.settings)
    scenario.study.options.pop("quick", None)
    return study_of(scenario).conclude(scenario, case.results(seed))
