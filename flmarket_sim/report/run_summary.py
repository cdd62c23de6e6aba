"""A run in brief, for a terminal: a table of rounds, and their totals."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from flmarket_sim.eventlog import read_events
from flmarket_sim.eventlog.behaviour_earnings import sentence
from flmarket_sim.eventlog.model_files import FOLDER, kept_hashes
from flmarket_sim.eventlog.summary import of_buyer, summarise

MOST_ROUNDS = 15  # rounds that a terminal shows


def render(run: str | os.PathLike[str]) -> RenderableType:
    """The rounds of a run as a table, and what they add up to."""
    summary, events = summarise(run), read_events(run, "round")
    parts: list[RenderableType] = []
    for name, totals in summary["buyers"].items():
        step = max(1, math.ceil(totals["rounds"] / MOST_ROUNDS))
        number = (rounds := of_buyer(events, name)).column("round").to_numpy()
        selected = ((number + 1) % step == 0) | (number == totals["rounds"] - 1)
        rows = rounds.filter(pa.array(selected)).to_pylist()
        model = summary["models"][name]
        parts += [
            _table(name, rows, totals),
            Text(_sentence(totals, model, summary["error"][name]) + "\n"),
        ]
    people = f"{summary['owners_who_sold']} of {summary['owners']} owners sold a gradient"
    parts.append(
        Text(
            f"{people}; over all rounds they lost e = {summary['mean_privacy_sold']:.3g} of "
            f"privacy on average, and nobody more than {summary['largest_privacy_sold']:.3g}"
        )
    )
    parts += [Text(note) for note in summary["notes"]]
    if summary["behaviours"]:
        parts.append(Text(sentence(summary["behaviours"])))
    if not summary["repeatable"]:
        parts.append(
            Text("Hardened noise: this run cannot be repeated; the same scenario gives another one")
        )
    parts.append(
        Text(
            f"{summary['events']:,} events in {summary['wall_seconds']} s, "
            f"in {summary['directory']}"
        )
    )
    if models := sum(map(len, kept_hashes(run).values())):
        parts.append(Text(f"{models:,} models in {Path(run) / FOLDER}"))
    return Group(*parts)


def _table(name: str, rows: list[dict[str, Any]], totals: dict[str, Any]) -> Table:
    table = Table(
        title=f"Rounds of {name}", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for head in (
        "round",
        "budget",
        "spent",
        "bids",
        "won",
        "sold",
        "privacy sold",
        "error bound",
        "accuracy",
    ):
        table.add_column(head, justify="right")
    for row in rows:
        table.add_row(
            str(row["round"] + 1),
            f"{row['budget']:,.0f}",
            f"{row['spent']:,.0f}",
            str(row["bids"]),
            str(row["winners"]),
            str(row["delivered"]),
            f"{row['privacy_sold']:,.1f}",
            f"{row['error_bound']:.3f}" if row["valid"] else "invalid",
            "" if row["accuracy"] is None else f"{row['accuracy']:.1%}",
        )
    table.add_section()
    bound, accuracy = totals["mean_error_bound"], totals["final_accuracy"]
    table.add_row(
        "all", f"{totals['budget']:,.0f}", f"{totals['spent']:,.0f}", "", "",
        str(totals["gradients"]),
        f"{totals['privacy_sold']:,.1f}", "" if bound is None else f"{bound:.3f}",
        "" if accuracy is None else f"{accuracy:.1%}",
    )  # fmt: skip
    return table


BOUND_OF = {
    "vector": "the squared error of the whole gradient",
    "coordinate": "one coordinate's noise (the paper's reading, which bounds no error)",
}


def _sentence(totals: dict[str, Any], model: str, error: str) -> str:
    spent = (
        f"{totals['spent'] / totals['budget']:.0%} of the budget was spent"
        if totals["budget"]
        else "no budget"
    )
    surplus = (
        f"owners kept {totals['owners_surplus']:,.0f} more than their privacy was worth to them"
    )
    lost = f"; {totals['lost']} sales fell through" if totals["lost"] else ""
    invalid = (
        f"; {totals['invalid_rounds']} rounds without a gradient"
        if totals["invalid_rounds"]
        else ""
    )
    last_line = (
        f"The error bound is of {BOUND_OF.get(error, error)}; the last line has its mean over "
        "valid rounds."
    )
    learner = "" if totals["final_accuracy"] is None else f" The model is {model}."
    return f"{spent}; {surplus}{lost}{invalid}. {last_line}{learner}"
