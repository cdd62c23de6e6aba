"""A run as part of a page: its rounds, sales, owners and misreports."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from flmarket_sim.errors import InputError
from flmarket_sim.eventlog import read_events, read_ledger, read_run
from flmarket_sim.eventlog.summary import (
    errors_of,
    models_of,
    perturbations_of,
    truth_of,
    warnings_of,
    yardsticks_of,
)
from flmarket_sim.report.html import run_accuracy, run_cheats, run_owners, run_timeline
from flmarket_sim.report.html.parts import (
    ROWS,
    Chart,
    Series,
    Source,
    Table,
    evenly,
    flattened,
    sampled,
    short,
)
from flmarket_sim.statistics import Estimate, estimate

Row = dict[str, Any]
MEASURES: dict[str, Callable[[Row], float | None]] = {  # of one round
    "error bound": lambda row: row["error_bound"] if row["valid"] else None,
    "budget": lambda row: row["budget"],
    "money spent": lambda row: row["spent"],
    "share of the budget spent": lambda row: (
        row["spent"] / row["budget"] if row["budget"] else None
    ),
    "privacy sold": lambda row: row["privacy_sold"],
    "owners' surplus": lambda row: row["spent"] - row["value_sold"],
    "gradients": lambda row: float(row["delivered"]),
    "seconds": lambda row: row["ended"] - row["started"],
}


# The accuracies of one run are one curve and not replications, so they have no interval.
LAST_ACCURACY = "last accuracy"


def read(path: Path) -> Source:
    info = read_run(path)
    if "view" in info:
        raise InputError(
            f"{path} is the view of {info['view']}; a report is of a whole run. "
            "Ask views with `flmarket sql`"
        )
    scenario = info["scenario"]
    rounds = read_events(path, "round").to_pylist()
    notices = [*_unfinished(info, len(rounds)), *map("Warning: {}".format, warnings_of(info))]
    lies_charts, lies_tables = run_owners.lies(path) if rounds else ([], [])
    cheats_charts, cheats_tables = run_cheats.cheats(path, scenario) if rounds else ([], [])
    timeline = [run_timeline.chart(path, rounds)] if rounds else []
    return Source(
        label=path.resolve().name,
        kind="run",
        title=scenario["name"],
        description=scenario.get("description", ""),
        notices=notices,
        cards=_cards(scenario, rounds, yardsticks_of(info), _truth(path, info)),
        charts=[
            *_by_round(rounds, models_of(scenario), yardsticks_of(info)),
            *run_owners.sales(path, scenario),
            *run_owners.privacy(path, scenario),
            *lies_charts,
            *cheats_charts,
            *timeline,
        ]
        if rounds
        else [],
        tables=[_means(rounds), *lies_tables, *cheats_tables, _rounds(rounds)] if rounds else [],
        measures={name: _over_rounds(rounds, of) for name, of in MEASURES.items()}
        | {LAST_ACCURACY: _last_accuracy(rounds)},
        settings=flattened(scenario),
        provenance=_provenance(info),
        world=_world(info),
        replications="rounds",
        units={name: _units(rounds, of) for name, of in MEASURES.items()},
    )


def _unfinished(info: Row, rounds: int) -> list[str]:
    outcome, error = info.get("outcome"), info.get("error", "")
    whole = (
        f"{rounds:,} complete rounds are shown"
        if rounds
        else "not one round was completed, so there is nothing to show"
    )
    if outcome == "interrupted":
        return [f"This run was interrupted; {whole}."]
    if outcome == "failed":
        return [f"This run failed ({error}); {whole}."]
    if outcome != "finished":
        return [f"This run has not ended, or its process was killed; {whole}."]
    return []


def _names(rounds: list[Row]) -> list[str]:
    return list(dict.fromkeys(row["buyer"] for row in rounds))


def _cards(
    scenario: Row,
    rounds: list[Row],
    yardsticks: run_accuracy.Yardsticks,
    truth: dict[str, float] | None,
) -> list[tuple[str, str]]:
    buyers = scenario["buyers"] or [scenario]
    auctions = ", ".join(
        dict.fromkeys((buyer.get("auction") or scenario["auction"])["name"] for buyer in buyers)
    )
    rules = ", ".join(
        dict.fromkeys(
            (buyer.get("aggregation") or scenario["aggregation"])["name"] for buyer in buyers
        )
    )
    last = _last_accuracy(rounds).mean
    spent, budget = sum(row["spent"] for row in rounds), sum(row["budget"] for row in rounds)
    surplus = sum(row["spent"] - row["value_sold"] for row in rounds)
    cards = [
        ("auction", auctions),
        ("aggregation", rules),
        ("owners", f"{scenario['owners']['count']:,}"),
        ("rounds", f"{len(rounds):,}"),
        (
            f"mean error bound ({', '.join(dict.fromkeys(errors_of(scenario).values()))})",
            short(_over_rounds(rounds, MEASURES["error bound"]).mean),
        ),
        ("perturbation", ", ".join(dict.fromkeys(perturbations_of(scenario).values()))),
        ("model", ", ".join(dict.fromkeys(models_of(scenario).values()))),
        (LAST_ACCURACY, short(last, percent=True) if last == last else "-"),
        *run_accuracy.cards(rounds, yardsticks),
        (
            "money spent",
            f"{short(spent)} ({spent / budget:.0%} of the budget)" if budget else short(spent),
        ),
        ("privacy sold", short(sum(row["privacy_sold"] for row in rounds))),
        *([] if truth is None else [("privacy truly lost", short(truth["lost"]))]),
        ("owners' surplus", short(surplus if truth is None else truth["kept"])),
    ]
    return [card for card in cards if card[1] != "-"]


def _truth(path: Path, info: Row) -> dict[str, float] | None:
    """What the ledger says beside the rounds, where it looks for cheats."""
    return truth_of(read_ledger(path)) if info["outcome"] == "finished" else None


def _by_round(
    rounds: list[Row], models: dict[str, str], yardsticks: run_accuracy.Yardsticks
) -> list[Chart]:
    """Charts over budget and over rounds, with a series for each buyer."""

    def line(
        of: Callable[[Row], float | None],
        over: Callable[[Row], float] = lambda row: row["round"] + 1,
    ) -> list[Series]:
        series = []
        for name in _names(rounds):
            of_buyer = evenly(
                [row for row in rounds if row["buyer"] == name and of(row) is not None], 2_000
            )
            if of_buyer:
                series.append(
                    Series(
                        name,
                        [[over(row), of(row)] for row in of_buyer],
                        [f"round {row['round'] + 1}" for row in of_buyer],
                    )
                )
        return series

    bound = line(MEASURES["error bound"])
    budgets = line(MEASURES["error bound"], lambda row: row["budget"])
    note = sampled(
        sum(len(s.points) for s in bound), sum(1 for row in rounds if row["valid"]), "rounds"
    )
    alone = len(_names(rounds)) == 1
    money = [
        Series(what if alone else f"{of_buyer.name}: {what}", of_buyer.points, of_buyer.labels)
        for what, measure in (("spent", "money spent"), ("budget", "budget"))
        for of_buyer in line(MEASURES[measure])
    ]
    charts = [
        Chart(
            "error-by-budget",
            "Error by budget",
            "scatter",
            "budget of the round",
            "error bound",
            budgets,
            note,
            y_log=True,
        ),
        Chart(
            "error-by-round",
            "Error by round",
            "line",
            "round",
            "error bound",
            bound,
            note,
            y_log=True,
        ),
        run_accuracy.chart(rounds, models, yardsticks),
        Chart(
            "money",
            "Money by round",
            "line",
            "round",
            "money",
            money,
            "What was spent, and what could have been.",
        ),
    ]
    return [chart for chart in charts if chart.series]


def _over_rounds(rounds: list[Row], of: Callable[[Row], float | None]) -> Estimate:
    """Mean over rounds; buyers share the luck of a round, so they are averaged first."""
    by_round: dict[int, list[float]] = {}
    for row in rounds:
        value = of(row)
        if value is not None:
            by_round.setdefault(row["round"], []).append(value)
    return estimate(np.array([np.mean(values) for values in by_round.values()], float))


def _last_accuracy(rounds: list[Row]) -> Estimate:
    """Mean over buyers of their last accuracy; a single run has no spread."""
    last = {row["buyer"]: row["accuracy"] for row in rounds if row["accuracy"] is not None}
    mean = float(np.mean(list(last.values()))) if last else float("nan")
    return Estimate(mean, float("nan"), float("nan"))


def _means(rounds: list[Row]) -> Table:
    names = _names(rounds)
    by_buyer = [[row for row in rounds if row["buyer"] == name] for name in names]
    rows: list[list[Any]] = [
        [measure, *(_over_rounds(of_buyer, of) for of_buyer in by_buyer)]
        for measure, of in MEASURES.items()
    ]
    rows.append([LAST_ACCURACY, *(_last_accuracy(of_buyer) for of_buyer in by_buyer)])
    rows = [row for row in rows if any(cell.mean == cell.mean for cell in row[1:])]
    note = (
        "Means over rounds; 95 % intervals resample the rounds of this one world. "
        "Other worlds need other seeds."
    )
    return Table("means", "A round on average", ["of a round", *names], rows, note)


def _rounds(rounds: list[Row]) -> Table:
    sample = evenly(rounds, ROWS)
    columns = [
        "buyer",
        "round",
        "budget",
        "spent",
        "asked",
        "bids",
        "winners",
        "delivered",
        "privacy sold",
        "error bound",
        "accuracy",
        "balanced accuracy",
    ]
    rows = [
        [
            row["buyer"], row["round"] + 1, row["budget"], row["spent"], row["asked"], row["bids"],
            row["winners"], row["delivered"], row["privacy_sold"],
            row["error_bound"] if row["valid"] else "invalid", row["accuracy"],
            row["balanced_accuracy"],
        ]
        for row in sample
    ]  # fmt: skip
    return Table("rounds", "Rounds", columns, rows, sampled(len(sample), len(rounds), "rounds"))


def _units(rounds: list[Row], of: Callable[[Row], float | None]) -> dict[tuple[Any, str], float]:
    values = {(row["round"], row["buyer"]): of(row) for row in rounds}
    return {key: value for key, value in values.items() if value is not None}


def _world(info: Row) -> str:
    """The settings that decide owners, bidders, budgets, delays and noise; not the policies."""
    scenario = info["scenario"]
    policies = ("behaviours", "cheats")
    owners = {key: value for key, value in scenario["owners"].items() if key not in policies}
    budgets = [
        (buyer["name"], buyer.get("budget") or scenario["budget"]) for buyer in scenario["buyers"]
    ]
    market = [scenario["market"][key] for key in ("bidders", "delay")]
    parts = [info["seed"], scenario["data"], owners, market, budgets or scenario["budget"]]
    return json.dumps(parts, sort_keys=True)


def _provenance(info: Row) -> dict[str, str]:
    log = info.get("log", {})
    facts = {
        "scenario sha256": info.get("scenario_sha256"),
        "log sha256": log.get("sha256"),
        "seed": info.get("seed"),
        "outcome": info.get("outcome"),
        "events": log.get("events"),
        "wall seconds": info.get("wall_seconds"),
    } | {f"{name} version": version for name, version in info.get("versions", {}).items()}
    return {name: str(value) for name, value in facts.items() if value is not None}
