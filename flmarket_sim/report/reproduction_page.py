"""The page of the paper's results, made again.

Each result has the paper's claims with our verdicts, the reasons for differences, a figure and a
table.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pyarrow as pa

from flmarket_sim.errors import FlmarketError
from flmarket_sim.paper.claims import verdicts
from flmarket_sim.paper.differences import why
from flmarket_sim.paper.reproduction import RESULTS, Reproduced, plain
from flmarket_sim.report import figures
from flmarket_sim.report.figure_style import SCREEN, FigureStyle
from flmarket_sim.storage.atomic_files import write_parquet, write_text

Row = dict[str, Any]
KEYS = ("market", "auction", "rule", "budget_factor", "profiles")
SHARED = {  # the rows of error-bound, other columns
    "invalid-gradients": ("invalid_rate",),
    "aggregation": ("saving",),
    "surplus": ("surplus_share", "spent_share", "cost_share"),
}
TABLE_FACTORS = (0.1, 0.3, 0.5, 1.0, 1.5, 2.0)


def write(
    results: list[Reproduced],
    page: Path,
    command: str,
    failed: dict[str, str] | None = None,
    style: FigureStyle = SCREEN,
) -> None:
    """Writes the page, and beside it a folder of the same name.

    The folder holds figure (PNG, SVG, PDF), rows (Parquet) and table (CSV) of each result. `failed`
    gives the reason for each requested result that is not on the page.
    """
    folder = page.with_suffix("")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for result in results:
            rows = [_named(row) for row in result.finding.rows]
            drawn = [_named(row) for row in result.finding.drawn or result.finding.rows]
            write_parquet(folder / f"{result.name}.parquet", pa.Table.from_pylist(rows))
            for suffix in (".png", ".svg", ".pdf"):
                picture = folder / f"{result.name}{suffix}"
                picture.unlink(missing_ok=True)  # a link there is not followed
                figures.draw(drawn, result.finding.plot, picture, style)
            write_text(folder / f"{result.name}.csv", _csv(result, rows))
        write_text(page, _text(results, folder.name, command, failed or {}))
    except OSError as error:
        raise FlmarketError(
            f"the results cannot be written to {page.parent}: {error}; free some space and run the "
            "same command again"
        ) from None


def _text(results: list[Reproduced], folder: str, command: str, failed: dict[str, str]) -> str:
    quick = results[0].quick
    names = [result.name for result in results]
    what = (
        "Every figure and table"
        if len(names) == len(RESULTS)
        else f"{len(names)} of {len(RESULTS)} results ({', '.join(names)})"
    )
    lines = [
        "# The paper again",
        "",
        f"{what} of FL-Market's evaluation (Zheng et al., IEEE BigData 2022), made by",
        "",
        f"    {command}",
        "",
        ("**A quick version**: few markets, few seeds, short trainings. " if quick else "")
        + "Each is a scenario of `scenarios/paper/`. Verdicts are computed from the numbers; a "
        "claim that rests on several comparisons is decided after Holm's correction. Each result "
        "says what its intervals are of. RegretNet, M-RegretNet, DM-RegretNet and seq-price have "
        "weights that come with the package, except where it says *published weights*: the "
        "authors' files.",
        "",
        *(
            line
            for name, reason in failed.items()
            for line in (f"**{name} could not be made**: {reason}", "")
        ),
        "| result | claim | here |",
        "|---|---|---|",
    ]
    judged = {result.name: verdicts(result.name, result.finding.rows) for result in results}
    lines += [
        f"| [{_title(r)}](#{_anchor(r)}) | {v.claim} | **{v.outcome}** |"
        for r in results
        for v in judged[r.name]
    ]
    for result in results:
        lines += [
            "",
            f"## {_title(result)}",
            "",
            f"    flmarket reproduce {result.name}{' --quick' if quick else ''}",
            "",
        ]
        lines += [f"![{RESULTS[result.name]}]({folder}/{result.name}.png)", ""]
        for verdict in judged[result.name]:
            lines += [f"- **{verdict.claim}: {verdict.outcome}.** {verdict.evidence}."]
        study = result.scenario.study
        method, *sentences = why(
            result.name, result.finding.rows, {} if study is None else study.options
        )
        lines += [
            "",
            f"*Why they differ.* {method}",
            "",
            *(f"- {sentence}" for sentence in sentences),
            "",
            _table(result),
            "",
            result.finding.intervals,
            "",
        ]
        lines += [
            f"All numbers: [{result.name}.csv]({folder}/{result.name}.csv), or the Parquet file "
            "that the command writes."
        ]
    return "\n".join(lines) + "\n"


def _csv(result: Reproduced, rows: list[Row]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, _csv_columns(result, list(rows[0])), extrasaction="ignore")
    writer.writeheader()
    writer.writerows({key: _cell(value, 6) for key, value in row.items()} for row in rows)
    return text.getvalue()


def _csv_columns(result: Reproduced, columns: list[str]) -> list[str]:
    """The columns of a CSV: all of them, or the result's measures of a shared experiment."""
    measures = SHARED.get(result.name)
    if measures is None:
        return columns
    return [name for name in columns if name in KEYS or name.startswith(measures)]


def _title(result: Reproduced) -> str:
    return RESULTS[result.name]


def _anchor(result: Reproduced) -> str:
    letters = "".join(c for c in _title(result).lower() if c.isalnum() or c in " -")
    return letters.replace(" ", "-")


def _table(result: Reproduced) -> str:
    rows = [_named(row) for row in result.finding.rows]
    tables = {
        "error-bound": lambda: "\n\n".join(
            _by_factor(rows, "error_bound", rule) for rule in ("opt-aggr", "convl-aggr")
        ),
        "invalid-gradients": lambda: _by_factor(rows, "invalid_rate", "opt-aggr", share=True),
        "aggregation": lambda: _by_factor(rows, "saving", "opt-aggr", share=True),
        "surplus": lambda: _by_factor(rows, "surplus_share", "opt-aggr", share=True),
        "accuracy": lambda: _final(rows),
        "levels": lambda: _columns(
            rows, ("market", "networks", "levels", "instances"),
            ("as_published", "axis_mended", "corrected", "probed", "ir_as_published",
             "ir_violation", "privacy_bought", "error_bound", "invalid"),
        ),
        "guarantees": lambda: _columns(
            rows, ("market", "auction", "rule", "paper_regret", "paper_ir"),
            ("as_published", "axis_mended", "luck", "corrected", "probe", "probe_median",
             "probe_trimmed", "ir_as_published", "ir_tested_on", "ir_violation"),
        ),
    }  # fmt: skip
    return tables[result.name]()


def _by_factor(rows: list[Row], measure: str, rule: str, share: bool = False) -> str:
    """A table with a line for each auction and a column for each budget factor."""
    measured = [row for row in rows if row["rule"] == rule and row.get(measure) is not None]
    factors = [
        f for f in dict.fromkeys(row["budget_factor"] for row in measured) if f in TABLE_FACTORS
    ]
    head = (
        f"| {measure.replace('_', ' ')}, {rule} | "
        + " | ".join(f"{factor:g}" for factor in factors)
        + " |"
    )
    lines = [head, "|---" * (len(factors) + 1) + "|"]
    for market, auction in dict.fromkeys((row["market"], row["auction"]) for row in measured):
        cells = {
            row["budget_factor"]: row
            for row in measured
            if (row["market"], row["auction"]) == (market, auction)
        }
        estimates = [_estimate(cells[f], measure, share) if f in cells else "" for f in factors]
        lines.append(f"| {market}: {auction} | " + " | ".join(estimates) + " |")
    return "\n".join(lines)


def _final(rows: list[Row]) -> str:
    last = max(row["round"] for row in rows)
    final = sorted(
        (row for row in rows if row["round"] == last),
        key=lambda row: (row["market"], -row["accuracy"]),
    )
    return _columns(
        final,
        ("market", "auction", "rule", "seeds"),
        ("accuracy", "over_baseline", "over_last_rule", "error_bound", "true_error", "invalid"),
    )


def _columns(rows: list[Row], plain_keys: tuple[str, ...], measures: tuple[str, ...]) -> str:
    heads = [key.replace("_", " ") for key in (*plain_keys, *measures)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for row in rows:
        cells = [_cell(row[key], 4) for key in plain_keys] + [
            _estimate(row, key) for key in measures
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _estimate(row: Row, key: str, share: bool = False) -> str:
    value = row[key]
    if value is None or value != value:
        return ""
    low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
    if low is None or high is None or low != low:
        return _number(value, share)
    return f"{_number(value, share)} [{_number(low, share)}, {_number(high, share)}]"


def _number(value: float, share: bool) -> str:
    return f"{value:.1%}" if share else f"{value:.3g}"


def _cell(value: Any, digits: int) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def _named(row: Row) -> Row:
    return row | {"auction": plain(row["auction"])} if "auction" in row else row
