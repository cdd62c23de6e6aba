"""Question: how much error does each auction leave at which budget?

Makes docs/figures/error_by_budget.{png,svg,csv}; run it with `make figures`. It is the study of
scenarios/paper/error-bound.toml with every built-in auction that needs no file: 500 markets of
each kind (no data set is needed, since sizes follow from class counts), and weights by the exact
OptAggr. A lottery is drawn once in each market.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from flmarket_sim.league.players import everybody
from flmarket_sim.paper.error_by_budget import FIRST_BEST
from flmarket_sim.paper.reproduction import experiment
from flmarket_sim.plugins.registry import auctions
from flmarket_sim.report.figure_style import SCREEN
from flmarket_sim.report.figures import COLOURS, MARKERS
from flmarket_sim.studies.study_run import find_out

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "figures" / "error_by_budget"
PROFILES = 500
BOTTOM, TOP = 0.6, 100.0  # where the panels end
LINES = (
    *(colour for colour in COLOURS if colour not in ("#000000", "#999999")),
    "#882255",
    "#999933",
)
BEST_TRUTHFUL = "seq-price"  # drawn in every panel
FAMILIES = {  # the room of an auction: the title of its panels
    "textbook": "textbook",
    "procurement": "procurement",
    "privacy_markets": "privacy markets",
    "learned": "learned",
}
KEYS = ("market", "auction", "budget_factor")
NUMBERS = ("error_bound", "error_bound_low", "error_bound_high", "invalid_rate")
Row = dict[str, Any]


def family(name: str) -> str:
    """The title of the panels in which an auction stands, from the room of its class."""
    room = auctions.get(name).__module__.split(".")[-2]
    return FAMILIES.get(room, FAMILIES["textbook"])


def measured(names: list[str], profiles: int, *more: str) -> list[Row]:
    """The columns of the CSV file, for these auctions and for first-best."""
    settings = [f"study.auctions={names}", 'study.rules=["opt-aggr"]', f"study.profiles={profiles}"]
    scenario = experiment("error-bound", quick=False, overrides=[*settings, *more])
    finding = find_out(scenario, progress=lambda done, total: print(f"{done} of {total}"))
    return [{key: row[key] for key in KEYS} | _rounded(row) for row in finding.rows]


def _rounded(row: Row) -> Row:
    """The numbers with five decimals; empty where nobody ever sells."""
    known = {key: row[key] for key in NUMBERS if row[key] is not None and np.isfinite(row[key])}
    return {key: round(known[key], 5) if key in known else None for key in NUMBERS}


def write_csv(rows: list[Row], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, (*KEYS, *NUMBERS))
        writer.writeheader()
        writer.writerows(rows)


def read_csv(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return [
            {key: row[key] for key in KEYS[:2]}
            | {key: float(row[key]) if row[key] else None for key in (*KEYS[2:], *NUMBERS)}
            for row in csv.DictReader(file)
        ]


def draw(rows: list[Row], *paths: Path) -> None:
    """A row of panels for each market and a column for each family.

    Grey lines are the auctions of the other families.
    """
    import matplotlib

    from flmarket_sim.report.shown_figure import ShownFigure

    markets = list(dict.fromkeys(row["market"] for row in rows))
    names = list(dict.fromkeys(row["auction"] for row in rows))
    titles = list(FAMILIES.values())
    settings: Any = SCREEN.settings()
    with matplotlib.rc_context(settings):
        figure = ShownFigure(figsize=(3.4 * len(titles), 3.9 * len(markets) + 1.4))
        grid = figure.subplots(len(markets), len(titles), squeeze=False, sharex=True, sharey=True)
        for market, axes in zip(markets, grid, strict=True):
            lines = {name: _line(rows, market, name) for name in names}
            axes[0].set_ylabel(f"{market}: mean error bound")
            for title, axis in zip(titles, axes, strict=True):
                _panel(axis, lines, title)
        for title, first, last in zip(titles, grid[0], grid[-1], strict=True):
            first.set_title(title)
            last.set_xlabel("budget / value of everything for sale")
            last.legend(
                loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, fontsize="small",
                frameon=False,
            )  # fmt: skip
        figure.subplots_adjust(0.05, 0.2, 0.99, 0.96, wspace=0.06, hspace=0.08)
        for path in paths:
            figure.savefig(path, dpi=150, metadata=_UNDATED.get(path.suffix))


_UNDATED = {".svg": {"Date": None}}


def _line(rows: list[Row], market: str, name: str) -> Any:
    """(4, F) budget factors, errors, and the ends of their intervals."""
    own = [row for row in rows if (row["market"], row["auction"]) == (market, name)]
    own.sort(key=lambda row: row["budget_factor"])
    columns = ("budget_factor", *NUMBERS[:3])
    return np.array([[row[key] for row in own] for key in columns], float)


def _panel(axis: Any, lines: dict[str, Any], title: str) -> None:
    inside = [name for name in lines if name != FIRST_BEST and family(name) == title]
    for name, (factor, error, _, _) in lines.items():
        if name not in (*inside, FIRST_BEST, BEST_TRUTHFUL):
            axis.plot(factor, error, color="#d8d8d8", linewidth=0.8, zorder=1)
    for place, name in enumerate(inside):
        factor, error, low, high = lines[name]
        colour, marker = LINES[place], MARKERS[place]
        axis.plot(
            factor, error, color=colour, marker=marker, markersize=3.5, linewidth=1.2, label=name
        )
        axis.fill_between(factor, low, high, color=colour, alpha=0.15, linewidth=0)
    for name, style in ((BEST_TRUTHFUL, "-."), (FIRST_BEST, "--")):
        if name in lines and name not in inside:
            factor, error = lines[name][:2]
            axis.plot(factor, error, style, color="black", linewidth=1.0, label=name)
    axis.set_yscale("log")
    axis.set_ylim(BOTTOM, TOP)
    axis.yaxis.set_major_formatter("{x:g}")
    axis.grid(alpha=0.3, linewidth=0.5)
    axis.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    found = measured(everybody(), PROFILES)
    write_csv(found, TARGET.with_suffix(".csv"))
    draw(found, TARGET.with_suffix(".png"), TARGET.with_suffix(".svg"))
    print(f"wrote {TARGET.relative_to(ROOT)}.csv, .png and .svg")
