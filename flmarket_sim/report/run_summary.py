"""A run in brief, for a terminal: a table of rounds or of buyers, and what they add up to."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from flmarket_sim.eventlog import read_events
from flmarket_sim.eventlog.behaviour_earnings import sentence
from flmarket_sim.eventlog.cheat_earnings import sentence as cheating
from flmarket_sim.eventlog.model_files import FOLDER, kept_hashes
from flmarket_sim.eventlog.reader import read_scenario
from flmarket_sim.eventlog.summary import summarise
from flmarket_sim.report.buyers_table import buyer_rows, what_accuracies_mean, why_budgets_differ
from flmarket_sim.tables.cells import Row, number

MOST_ROUNDS = 15  # rounds that a terminal shows
OF_A_ROUND = ("round", "budget", "spent", "sold", "privacy_sold", "error_bound", "accuracy")
OF_A_BUYER = (
    "buyer", "budget", "spent", "gradients", "privacy_sold", "mean_error_bound", "final_accuracy",
)  # fmt: skip
BOUND_OF = {
    "vector": "the squared error of the whole gradient",
    "coordinate": "one coordinate's noise (the paper's reading, which bounds no error)",
}


@dataclass(frozen=True)
class RunInBrief:
    """A table with the columns that are shown first, and sentences.

    The rows are rounds, or buyers where there are several.
    """

    title: str
    rows: list[Row]
    columns: tuple[str, ...]
    sentences: list[str]


def in_brief(run: str | os.PathLike[str], most: int | None = MOST_ROUNDS) -> RunInBrief:
    """What a terminal shows of a run; of the rounds of a buyer at most so many, by default 15."""
    summary, events = summarise(run), read_events(run, "round")
    buyers = list(summary["buyers"])
    means = [totals["mean_error_bound"] for totals in summary["buyers"].values()]
    sentences = _of_errors(summary["error"], means)
    if len(buyers) > 1:
        scenario = read_scenario(run)
        rows = buyer_rows(summary["buyers"], events, scenario)
        title = f"{summary['name']}: {len(buyers)} buyers, {scenario.rounds:,} rounds each"
        columns = OF_A_BUYER
        sentences += [reason] if (reason := why_budgets_differ(rows, scenario)) else []
        sentences += [compared] if (compared := what_accuracies_mean(rows)) else []
    else:
        rows = _rounds(events, most)
        shown = f", of which {len(rows)} are shown" if len(rows) < events.num_rows else ""
        title, columns = f"{summary['name']}: {events.num_rows:,} rounds{shown}", OF_A_ROUND
        sentences = [
            _totals(summary["buyers"][name], summary["truth"]) for name in buyers
        ] + sentences
        sentences += [
            _accuracy(totals, name, summary["models"][name])
            for name, totals in summary["buyers"].items()
            if totals["final_accuracy"] is not None
        ]
    sentences += [*_people(summary), *_files(run, summary)]
    return RunInBrief(title, rows, columns, sentences)


def _rounds(events: pa.Table, most: int | None) -> list[Row]:
    """Some rounds of one buyer at equal distances, and the last; without `most` all of them."""
    step = 1 if most is None else max(1, math.ceil(events.num_rows / most))
    number = events.column("round").to_numpy()
    selected = ((number + 1) % step == 0) | (number == events.num_rows - 1)
    return [_of_round(row) for row in events.filter(pa.array(selected)).to_pylist()]


def _of_round(event: dict[str, Any]) -> Row:
    """A round event as a row: rounds are counted from 1, an invalid gradient has no error."""
    row = {"round": event["round"] + 1} | {
        name: event[name]
        for name in event
        if name not in ("seq", "time", "round", "sender", "receiver", "buyer")
    }
    row["sold"] = row.pop("delivered")
    row["error_bound"] = row["error_bound"] if row["valid"] else None
    return row


def _totals(totals: dict[str, Any], truth: dict[str, float] | None) -> str:
    """The totals of the only buyer. `truth` is what the ledger says, where it looks for cheats."""
    spent = (
        f"{totals['spent'] / totals['budget']:.0%} of the budget was spent, "
        f"{number(totals['spent'])} of {number(totals['budget'])}"
        if totals["budget"]
        else "There was no budget"
    )
    bought = f"for {totals['gradients']:,} gradients"
    kept = totals["owners_surplus"]
    surplus = (
        "what their privacy was worth to the owners, only they know"  # real clients
        if kept is None
        else f"owners kept {number(kept)} more than their privacy was worth to them"
    )
    if truth is not None:
        deposits = f", after {number(truth['forfeited'])} of lost deposits"
        surplus = (
            f"owners kept {number(truth['kept'])} more than their messages truly cost them"
            f"{deposits if truth['forfeited'] else ''}"
        )
    lost = f"; {totals['lost']:,} sales fell through" if totals["lost"] else ""
    invalid = (
        f"; {totals['invalid_rounds']:,} rounds brought no gradient, and no error bound"
        if totals["invalid_rounds"]
        else ""
    )
    return f"{spent}, {bought}; {surplus}{lost}{invalid}."


def _accuracy(totals: dict[str, Any], buyer: str, model: str) -> str:
    """The accuracy, and what it is to be compared with."""
    beside = {
        "constant guess": totals["constant_guess"],
        "balanced": totals["final_balanced_accuracy"],
        "without noise": totals["noiseless_accuracy"],
    }
    known = [f"{name} {share:.0%}" for name, share in beside.items() if share is not None]
    compared = f" ({', '.join(known)})" if known else ""
    accuracy = f"{totals['final_accuracy']:.0%}{compared}"
    return f"The model of {buyer} is {model}; its accuracy is {accuracy}."


def _of_errors(errors: dict[str, str], means: list[float | None]) -> list[str]:
    """Of what the error bounds are, and the mean of a single buyer's."""
    kinds = list(dict.fromkeys(errors.values()))
    if len(kinds) == 1:
        mean = means[0] if len(means) == 1 else None
        average = "" if mean is None else f"; its mean over valid rounds is {number(mean)}"
        return [f"The error bound is of {BOUND_OF.get(kinds[0], kinds[0])}{average}."]
    return [f"{name}: the error bound is of {BOUND_OF.get(e, e)}." for name, e in errors.items()]


def _people(summary: dict[str, Any]) -> list[str]:
    people = f"{summary['owners_who_sold']:,} of {summary['owners']:,} owners sold a gradient"
    if not summary["owners_who_sold"]:
        return [f"{people}.", *summary["notes"]]
    sold, most = (number(summary[f"{which}_privacy_sold"]) for which in ("mean", "largest"))
    told = (
        f"{people}; over all rounds they lost e = {sold} of privacy on average, and nobody more "
        f"than {most}."
    )
    if (truth := summary["truth"]) is not None:
        told = (
            f"{people}; over all rounds they sold e = {sold} of privacy on average, and nobody "
            f"more than {most}; their records truly lost e = {number(truth['mean_lost'])} on "
            f"average, and nobody's more than {number(truth['largest_lost'])}."
        )
    sentences = [told, *summary["notes"]]
    behaved = [sentence(summary["behaviours"])] if summary["behaviours"] else []
    return sentences + behaved + ([cheating(summary["cheats"])] if summary["cheats"] else [])


def _files(run: str | os.PathLike[str], summary: dict[str, Any]) -> list[str]:
    """What the directory holds."""
    hardened = "Hardened noise: this run cannot be repeated; the same scenario gives another one."
    models = sum(map(len, kept_hashes(run).values()))
    return [
        *([] if summary["repeatable"] else [hardened]),
        f"{summary['events']:,} events in {summary['wall_seconds']} s, in {summary['directory']}",
        *([f"{models:,} models in {Path(run) / FOLDER}"] if models else []),
    ]
