"""`fm.evaluate`: auctions side by side on the same markets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim import aggregation
from flmarket_sim.auctions import named
from flmarket_sim.auctions.learned.regime import regime_note
from flmarket_sim.experiments.engine import Progress
from flmarket_sim.perturbation.scenario_error import ErrorSettings
from flmarket_sim.report.difference_figure import draw_differences
from flmarket_sim.report.evaluation_table import floor_sentence
from flmarket_sim.report.figure_style import SCREEN, FigureStyle
from flmarket_sim.report.figures import FIRST_BEST, FLOOR
from flmarket_sim.results.arguments import AnyScenario, Budgets, budget_factors, scenario_from
from flmarket_sim.results.given_auctions import AnyAuction, given_auctions
from flmarket_sim.results.market_differences import InOneMarket, difference_rows, differences_part
from flmarket_sim.results.performing import Perform, in_python
from flmarket_sim.results.result import Result, ResultPart
from flmarket_sim.studies import evaluation
from flmarket_sim.studies.evaluation import Score
from flmarket_sim.studies.study import Plot
from flmarket_sim.tables.result_table import ResultTable

Floats = NDArray[np.float64]


def evaluate(
    auctions: AnyAuction | Sequence[AnyAuction],
    scenario: AnyScenario,
    *,
    budgets: Budgets = "0.1:2.0:0.1",
    profiles: int = 1000,
    rule: str = "opt-aggr",
    regret: int = 0,
    floor: int = 0,
    seed: int = 0,
    compare: str | None = None,
    workers: int = 1,
    progress: Progress | None = None,
    perform: Perform | None = None,
    **changes: Any,
) -> EvaluationResult:
    """Compares auctions on the same markets: error, spending, individual rationality and regret.

    Parameters
    ----------
    auctions
        One auction or several: names, `NAME@WEIGHTS`, `module:Class`, classes or objects. Classes
        and objects stay in this process.
    scenario
        The market that profiles are drawn from: a file, the name of a shipped scenario, or a
        Scenario. Other keywords change its values: `owners__count=50`.
    budgets
        Budget factors: "low:high:step", one number, several numbers, or None for factors drawn
        from [0.1, 2].
    profiles
        Markets at each budget factor.
    rule
        Aggregation rule.
    regret
        Markets of them to search for lies; 0 for none.
    floor
        Markets of them to compare with the second-best floor; 0 for none.
    compare
        The auction that `differences` compares the others with; by default the first.
    workers, progress
        Processes to use, and a function that is called with (tasks done, tasks in all).
    perform
        Does the tasks in place of `workers` and `progress`.
    """
    with given_auctions(auctions) as given:
        mechanisms = [named(name) for name in given.names]
        base = given.name_of(compare) if compare is not None else given.names[0]
        aggregation.create(rule)
        market = scenario_from(scenario, changes)
        tasks = evaluation.evaluation_tasks(
            given.names, market, budget_factors(budgets), profiles, rule, regret, seed, floor
        )
        counted = tasks[0].error
        notes = dict.fromkeys(regime_note(each, counted.error()) for each in mechanisms)
        run = perform or in_python(workers, progress, given.travel)
        results = run("evaluate", tasks, evaluation.evaluate, "tasks")
        errors = {
            (task.budget_factor, task.auction): np.array(result["errors"])
            for task, result in zip(tasks, results, strict=True)
            if task.auction in given.labels
        }
        return EvaluationResult(
            evaluation.scores(tasks, results),
            errors,
            tasks[0].truth.population,
            given.labels,
            base,
            counted,
            [note for note in notes if note is not None],
            frozenset(given.names) if given.travel else frozenset(),
        )


@dataclass(frozen=True, repr=False)
class EvaluationResult(Result):
    """Auctions side by side on the same markets.

    scores      a Score for each budget factor and auction
    errors      (K,) the error of each market, by budget factor and auction; inf where nobody sold
    labels      the name for people of each auction
    base        the auction that `differences` compares the others with
    counted     what the error is of
    notes       what a reader should know about learned auctions in this market
    typed       the auctions that were given as texts, if all of them were
    """

    scores: list[Score]
    errors: dict[tuple[str, str], Floats]
    population: NDArray[np.int64] | None
    labels: dict[str, str]
    base: str
    counted: ErrorSettings
    notes: list[str]
    typed: frozenset[str]

    @cached_property
    def table(self) -> ResultTable:
        rows = []
        for score in self.scores:
            label = self.labels[score.auction]
            name = score.auction if score.auction in self.typed else label
            rows.append(score.as_dict() | {"auction": name, "label": label})
        return ResultTable.of(rows)

    @cached_property
    def differences(self) -> ResultTable:
        """Errors less those of the first auction (or `compare`) in the same markets.

        A row for each other auction at each budget factor; the 95 % intervals hold together.
        """
        pairs = [
            (self._in_market(factor, self.base), self._in_market(factor, auction))
            for factor, auction in self.errors
            if auction != self.base
        ]
        return ResultTable.of(difference_rows(pairs, self.population))

    @property
    def title(self) -> str:
        markets, factors = self.scores[0].profiles, len({factor for factor, _ in self.errors})
        budgets = "" if factors == 1 else f" at each of {factors} budget factors"
        names = ", ".join(self.labels.values())
        return f"{names} in {markets:,} markets{budgets}"

    @property
    def sentences(self) -> list[str]:
        floor = [floor_sentence(self.scores)] if self.scores[0].floor is not None else []
        return [self.counted.sentence(), *floor, *self.notes]

    def parts(self) -> list[ResultPart]:
        return [self._scores_part(), *differences_part(self.differences.rows, "mean error bound")]

    def _scores_part(self) -> ResultPart:
        """The columns that answer the question; the table has all."""
        searched = self.scores[0].regret is not None
        failed = any(score.invalid_rate > 0 for score in self.scores)
        rows: list[dict[str, Any]] = []
        for score in self.scores:
            row: dict[str, Any] = {
                "budget": score.budget_factor,
                "auction": self.labels[score.auction],
                "error bound": score.error_bound,
                "error bound_low": score.error_low,
                "error bound_high": score.error_high,
            }
            if searched:
                row |= {
                    "regret": score.regret,
                    "regret_low": score.regret_low,
                    "regret_high": score.regret_high,
                }
            if score.floor is not None:
                row["/floor"] = f"{score.over_floor:.2f}"
            row |= {"/best": f"{score.ratio:.2f}", "spent": f"{score.spent_share:.0%}"}
            row["IR"] = f"{score.ir_violation:.3f}"
            if failed:
                row["no sale"] = f"{score.invalid_rate:.1%}"
            rows.append(row)
        return ResultPart(rows)

    def drawing(self) -> tuple[list[dict[str, Any]], Plot]:
        """Mean errors by budget factor with first-best; by auction where there is one factor."""
        drawn = [
            {
                "auction": self.labels[score.auction],
                "budget_factor": score.budget_factor,
                "error_bound": score.error_bound,
                "error_bound_low": score.error_low,
                "error_bound_high": score.error_high,
            }
            for score in self.scores
        ]
        budget, error = "budget / value of everything for sale", "mean error bound"
        factors = list(dict.fromkeys(score.budget_factor for score in self.scores))
        if len(factors) == 1:
            one = [row | {"budget_factor": f"budget factor {factors[0]}"} for row in drawn]
            first, levels = self.scores[0], {FIRST_BEST: self.scores[0].first_best}
            if first.floor is not None:
                levels[FLOOR] = first.floor
            one += [
                {"auction": one[0]["auction"], "budget_factor": name, "error_bound": level}
                for name, level in levels.items()
            ]
            return one, Plot("auction", "error_bound", "budget_factor", "", error, bars=True)
        best = {score.budget_factor: score.first_best for score in self.scores}
        drawn += [
            {"auction": FIRST_BEST, "budget_factor": factor, "error_bound": value}
            for factor, value in best.items()
        ]
        lines = [row | {"budget_factor": float(str(row["budget_factor"]))} for row in drawn]
        return lines, Plot("budget_factor", "error_bound", "auction", budget, error, log=True)

    def plot_differences(
        self, path: str | os.PathLike[str] | None = None, style: FigureStyle = SCREEN
    ) -> Any:
        """Draws `differences`: a dot and an interval for each. The intervals hold together."""
        factors = {row["budget_factor"] for row in self.differences.rows}
        rows = []
        for row in self.differences.rows:
            name = style.named(row["auction"])
            at = f", budget {row['budget_factor']}" if len(factors) > 1 else ""
            rows.append(row | {"label": f"{name}{at}"})
        base = style.named(self.labels[self.base])
        named = replace(style, x_label=style.x_label or f"mean error bound less that of {base}")
        return draw_differences(rows, None if path is None else Path(path), named)

    def as_json(self) -> list[dict[str, Any]]:
        """The scores, each with its difference to the base in the same markets."""
        ends = ("compared_with", "difference", "difference_low", "difference_high", "verdict")
        less = {(row["budget_factor"], row["auction"]): row for row in self.differences.rows}
        return [
            row | {key: less.get((row["budget_factor"], row["label"]), {}).get(key) for key in ends}
            for row in self.rows
        ]

    def _in_market(self, factor: str, auction: str) -> InOneMarket:
        return InOneMarket(
            self.labels[auction], self.errors[factor, auction], {"budget_factor": factor}
        )
