"""Mechanisms side by side on the same profiles: error, spending and truthfulness.

Each auction at each budget factor is a task of the engine, and so are the two yardsticks of each
factor: first-best (auctions/first_best.py) and second-best, the floor (auctions/second_best.py).
The floor needs budgets that say nothing about rates. So auctions decide a second time for it, in
markets whose budget is the factor times what everything would be worth at the mean rate.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim import aggregation
from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.rule import weights_in
from flmarket_sim.auctions import auction_in, named
from flmarket_sim.auctions.auction import Outcome, sales_and_rest
from flmarket_sim.auctions.auction_name import auction_labels
from flmarket_sim.auctions.first_best import first_best
from flmarket_sim.auctions.play import expected_utility, measured_against
from flmarket_sim.auctions.second_best import public_budget, second_best
from flmarket_sim.experiments.content import array_contents, profile_contents
from flmarket_sim.experiments.task import task_key
from flmarket_sim.market.named_files import file_contents
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.owners.population import draw_markets, draw_profiles
from flmarket_sim.owners.rate_prior import UniformRates
from flmarket_sim.perturbation.scenario_error import ErrorSettings, error_settings
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import Estimate, estimate
from flmarket_sim.strategy.probe import probe

Floats = NDArray[np.float64]
FIRST_BEST, FLOOR = ":first-best", ":second-best"  # in place of an auction; no auction has a colon


@dataclass(frozen=True)
class Score:
    """One mechanism at one budget factor (or a range of them).

    auction is the name as it was typed, and label what tables and legends call it.
    error_bound is the mean over valid markets; error_low and error_high are the ends of its 95 %
    interval over populations. first_best is the mean error of the best purchase found for a buyer
    who pays true valuations, and ratio the mean error over that of the same markets.
    ir_violation is the mean expected shortfall of payment below cost, relative to cost.
    floor is the mean of what no truthful mechanism whose budget holds every time can be below, over
    `floor_profiles` markets with public budgets, and over_floor the mean error over it there, with
    the ends of its interval over populations (None: not computed, or rates are no secret).
    regret is the mean gain / cost of the best misreports that the probe found over
    `regret_profiles` markets, with the ends of its interval (None: not searched).
    counted is "vector" or "coordinate", what the error is of, and kappa its regime.
    """

    auction: str
    label: str
    budget_factor: str
    profiles: int
    error_bound: float
    error_low: float
    error_high: float
    median_error_bound: float
    invalid_rate: float
    spent_share: float
    ir_violation: float
    first_best: float
    ratio: float
    floor: float | None
    over_floor: float | None
    over_floor_low: float | None
    over_floor_high: float | None
    floor_profiles: int
    regret: float | None
    regret_low: float | None
    regret_high: float | None
    regret_profiles: int
    counted: str
    kappa: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class EvaluationTask:
    """One auction, or one of the two yardsticks, on markets at one budget factor.

    `factor` (K,) multiplies the value of everything for sale in each market. The first
    `floor_profiles` markets are compared with the floor, with rates from `rates`, low to high.
    """

    auction: str
    budget_factor: str
    truth: Profiles
    factor: Floats
    error: ErrorSettings
    rule: str
    regret_profiles: int
    seed: int
    floor_profiles: int = 0
    rates: tuple[float, float] = (1.0, 1.0)

    @cached_property
    def key(self) -> str:
        counted = self.error.as_dict()
        facts = [self.auction, counted, self.rule, self.regret_profiles, self.seed]
        facts += [self.floor_profiles, self.rates]
        files = file_contents([self.auction, self.rule, counted])
        arrays = (profile_contents(self.truth), array_contents(self.factor))
        return task_key("evaluation", json.dumps([facts, files]), *arrays)

    @property
    def label(self) -> str:
        return f"{self.auction.lstrip(':')} at budget factor {self.budget_factor}"

    @property
    def budget(self) -> Floats:
        return np.asarray(self.factor * self.truth.total_value())

    def public(self) -> tuple[Profiles, Floats]:
        """The markets that are compared with the floor, and their public budgets."""
        rows = slice(0, self.floor_profiles)
        truth = self.truth.take(rows)
        return truth, public_budget(truth, self.factor[rows], UniformRates(*self.rates))


def evaluation_tasks(
    auctions: Sequence[str],
    scenario: Scenario,
    factors: list[float] | None,
    profiles: int,
    rule: str,
    regret_profiles: int,
    seed: int,
    floor_profiles: int = 0,
) -> list[EvaluationTask]:
    """The tasks for each budget factor, or, without factors, for factors drawn from [0.1, 2].

    All of them use the same profiles. An auction is a text as in auctions/auction_name.py.
    """
    if factors is None:
        truth, drawn = draw_markets(scenario, profiles, None, seed)
        settings = [("0.1 to 2.0", drawn)]
    else:
        truth = draw_profiles(scenario, profiles, seed)
        settings = [(f"{factor:g}", np.full(profiles, factor)) for factor in factors]
    error = error_settings(scenario)
    few = min(floor_profiles, profiles)
    yardsticks = (FIRST_BEST, FLOOR) if few else (FIRST_BEST,)
    return [
        EvaluationTask(
            auction,
            label,
            truth,
            factor,
            error,
            rule,
            regret_profiles,
            seed,
            few,
            scenario.owners.rate,
        )
        for label, factor in settings
        for auction in (*yardsticks, *auctions)
    ]


def evaluate(task: EvaluationTask) -> dict[str, Any]:
    """What the task's auction does: the columns of its score, and the error of each market.

    For a yardstick it is the error bound of each market.
    """
    truth, budget, counted = task.truth, task.budget, task.error.error()
    if task.auction == FIRST_BEST:
        return {"error_bound": first_best(truth, budget, error=counted).error_bound.tolist()}
    if task.auction == FLOOR:
        bound = second_best(*task.public(), UniformRates(*task.rates), counted, seed=task.seed)
        return {"error_bound": bound.floor.tolist()}
    auction, bids = auction_in(named(task.auction), counted), truth.bids()
    outcome = auction.decide(bids, budget, np.random.default_rng(task.seed))
    error = _error(task, outcome, truth)
    valid = np.isfinite(error)
    utility, cost = expected_utility(auction, truth, bids, budget)
    shortfall = np.maximum(-utility, 0.0) / measured_against(truth, cost)
    regret: Estimate | None = None
    if task.regret_profiles:
        rows = slice(0, task.regret_profiles)
        search = probe(auction, truth.take(rows), budget[rows], seed=task.seed)
        regret = search.mean_relative_gain()
    mean = estimate(error, truth.population)
    public_error: list[float] = []
    if task.floor_profiles:
        some, money = task.public()
        again = auction.decide(some.bids(), money, np.random.default_rng(task.seed))
        public_error = _error(task, again, some).tolist()
    return {
        "public_error": public_error,
        "errors": error.tolist(),
        "profiles": len(error),
        "error_bound": float(error[valid].mean()) if valid.any() else float("inf"),
        "error_low": mean.low,
        "error_high": mean.high,
        "median_error_bound": float(np.median(error)),
        "invalid_rate": float(1 - valid.mean()),
        "spent_share": float((outcome.payment.sum(axis=1) / budget).mean()),
        "ir_violation": float(shortfall.mean()),
        "regret": None if regret is None else regret.mean,
        "regret_low": None if regret is None else regret.low,
        "regret_high": None if regret is None else regret.high,
        "regret_profiles": task.regret_profiles,
    }


def _error(task: EvaluationTask, outcome: Outcome, truth: Profiles) -> Floats:
    """(K,) the error of sales under the task's rule."""
    counted = task.error.error()
    loss, size = sales_and_rest(outcome, truth.data_size)
    weights = weights_in(aggregation.create(task.rule), loss, size, counted)
    return error_bound_in(counted, weights, loss, size).total


def scores(tasks: Sequence[EvaluationTask], results: Sequence[dict[str, Any]]) -> list[Score]:
    """The score of every auction at every factor. The yardsticks precede their auctions."""
    yardsticks: dict[str, Floats] = {}
    labels = auction_labels(dict.fromkeys(task.auction for task in tasks))
    made = []
    for task, result in zip(tasks, results, strict=True):
        if task.auction in (FIRST_BEST, FLOOR):
            yardsticks[task.auction] = np.array(result["error_bound"])
        else:
            made.append(_score(task, labels[task.auction], dict(result), yardsticks))
    return made


def _score(
    task: EvaluationTask, label: str, columns: dict[str, Any], yardsticks: dict[str, Floats]
) -> Score:
    best = yardsticks[FIRST_BEST]
    valid = best[np.isfinite(columns.pop("errors"))]
    ratio = columns["error_bound"] / float(valid.mean()) if len(valid) else float("inf")
    public_error = np.array(columns.pop("public_error"))
    floor = yardsticks.get(FLOOR)
    over: Estimate | None = None
    if floor is not None:
        over = estimate(public_error, task.truth.take(slice(0, len(floor))).population, floor)
    return Score(
        auction=task.auction,
        label=label,
        budget_factor=task.budget_factor,
        first_best=float(best.mean()),
        ratio=ratio,
        floor=None if floor is None else float(floor.mean()),
        over_floor=None if over is None else over.mean,
        over_floor_low=None if over is None else over.low,
        over_floor_high=None if over is None else over.high,
        floor_profiles=task.floor_profiles,
        counted=task.error.kind,
        kappa=task.error.error().kappa,
        **columns,
    )
