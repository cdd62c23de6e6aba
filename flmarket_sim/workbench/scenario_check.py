"""What is wrong with a scenario while it is written: the errors of a file, each at its place."""

from __future__ import annotations

from typing import Any

from flmarket_sim.errors import FlmarketError, InputError, shortened
from flmarket_sim.scenario.check import check_scenario
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.problems import Problem, dotted
from flmarket_sim.scenario.scenario_file import read_toml
from flmarket_sim.scenario.toml_lines import key_lines
from flmarket_sim.sweep.sweep_plan import parse_sweep
from flmarket_sim.workbench.toml_text import toml_text

MOST_PROBLEMS = 100


def check_text(text: str) -> dict[str, Any]:
    """Checks a TOML text: its tables, and every error with its place and line."""
    try:
        tables = read_toml(text, "the scenario")
    except FlmarketError as error:
        return {"tables": None, "text": text, "problems": [_whole(error)], "summary": None}
    lines = key_lines(text)
    scenario, problems = check_scenario(tables)
    found = [_problem(problem, problem.line(lines)) for problem in problems[:MOST_PROBLEMS]]
    if scenario is not None and "sweep" in tables:
        found += _sweep_problems(text)
    shown = None if found else _summary(scenario, tables)
    return {"tables": tables, "text": text, "problems": found, "summary": shown}


def check_tables(tables: Any) -> dict[str, Any]:
    """Checks the tables of a form; the text of the answer is the file that they would be."""
    if not isinstance(tables, dict):
        raise InputError("a scenario is made of tables")
    return check_text(toml_text(tables))


def _sweep_problems(text: str) -> list[dict[str, Any]]:
    try:
        parse_sweep(text, "the scenario")
        return []
    except FlmarketError as error:
        return [_whole(error) | {"path": "sweep"}]


def _problem(problem: Problem, line: int) -> dict[str, Any]:
    return {"path": dotted(problem.path), "line": line, "message": shortened(problem.message)}


def _whole(error: Exception) -> dict[str, Any]:
    return {"path": "", "line": 0, "message": shortened(str(error))}


def _summary(scenario: Scenario | None, tables: dict[str, Any]) -> dict[str, Any] | None:
    """A sentence about a scenario that is right, and what can be started with it."""
    if scenario is None:
        return None
    buyers = scenario.resolved_buyers()
    auctions = ", ".join(dict.fromkeys(buyer.auction.name for buyer in buyers))
    models = ", ".join(dict.fromkeys(buyer.model.name for buyer in buyers))
    sentence = (
        f"{scenario.owners.count:,} owners, {scenario.market.bidders:,} asked a round, "
        f"{scenario.rounds:,} rounds; {auctions}, model {models}"
    )
    starts = ["run"]
    starts += ["sweep"] if "sweep" in tables else []
    starts += ["study"] if scenario.study is not None else []
    return {"sentence": sentence, "starts": starts, "name": scenario.name}
