"""The made parts of docs/league.md: `python -m docs.league_page` writes them anew.

`python -m docs.league_page FOLDER...` first makes the entries and the figure from the folders of
leagues (`flmarket league -a all --out FOLDER`). Where a mechanism has played in several of them,
the first one counts.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from docs import certified_records
from flmarket_sim.league import entries
from flmarket_sim.league.card import card
from flmarket_sim.league.league_columns import COLUMNS
from flmarket_sim.league.places import why_no_place
from flmarket_sim.league.players import records
from flmarket_sim.report import league_figure
from flmarket_sim.report.study_folder import read_study
from flmarket_sim.studies.study import Row

HERE = Path(__file__).parent
PAGE = HERE / "league.md"
FIGURE = HERE / "figures" / "league.svg"
ENTRIES = HERE.parent / "flmarket_sim" / "league" / "entries"
BETWEEN = re.compile(r"(<!-- made by:.*?-->\n).*?(<!-- end -->)", re.DOTALL)
MAIN = (
    "over_floor", "gain", "underpaid", "rest_error", "names_gain", "coalition_gain", "accuracy",
    "spent", "surplus", "invalid", "milliseconds",
)  # fmt: skip
BY_MARKET = "over_floor"


def markets() -> str:
    lines = ["| market | what it is | draws | attacked |", "|---|---|---:|---|"]
    for market in card().markets:
        attacked = "yes" if market.attacked else "no"
        lines.append(f"| `{market.name}` | {market.why} | {market.draws} | {attacked} |")
    lines.append(f"| `training` | {card().training['why']} | | |")
    return "\n".join(lines)


def columns() -> str:
    lines = ["| column | what it is | why it is there |", "|---|---|---|"]
    return "\n".join(lines + [f"| `{one.name}` | {one.meaning} | {one.why} |" for one in COLUMNS])


def table(shipped: list[dict[str, Any]]) -> str:
    """Every entry over the whole card, by its place."""
    heads = [name.replace("_", " ") for name in MAIN]
    lines = ["| place | mechanism | records | " + " | ".join(heads) + " |"]
    lines.append("|---:|---|---|" + "---:|" * len(heads))
    for entry in shipped:
        cells = [_cell(entry["whole"], name) for name in MAIN]
        place = "" if entry["place"] is None else str(entry["place"])
        start = f"| {place} | {_name(entry)} | {records(entry['mechanism'])} | "
        lines.append(start + " | ".join(cells) + " |")
    return "\n".join(lines)


def no_places(shipped: list[dict[str, Any]]) -> str:
    """Why mechanisms have no place, a line for each reason."""
    found = ((entry["auction"], why_no_place(entry["whole"])) for entry in shipped)
    return "\n".join(f"- `{name}` {why}" for name, why in found if why)


def _name(entry: dict[str, Any]) -> str:
    """The mechanism, and whether it has played the quick size of the card only."""
    return str(entry["auction"]) + (" (quick)" if entry["size"] == "quick" else "")


def by_market(shipped: list[dict[str, Any]]) -> str:
    """The error over the floor of every entry in every market."""
    names = [market.name for market in card().markets]
    lines = ["| mechanism | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for entry in shipped:
        cells = [_number(entry["markets"].get(name, {}).get(BY_MARKET)) for name in names]
        lines.append(f"| {_name(entry)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(row: Row, name: str) -> str:
    text = _number(row.get(name))
    if f"{name}_low" in row and text:
        text += f" [{_number(row[f'{name}_low'])}, {_number(row[f'{name}_high'])}]"
    return text


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if abs(value) < 5e-4:
        return "0"
    return (
        f"{value:.3f}"
        if abs(value) < 0.1
        else f"{value:.2f}"
        if abs(value) < 100
        else f"{value:.3g}"
    )


def page(text: str) -> str:
    """The page with its made parts as they are now, in the order in which it marks them."""
    shipped = entries.shipped_entries()
    version = f"Card {card().version}, sha256 `{card().sha256[:16]}`."
    made = iter(
        (
            f"{version}\n\n{markets()}",
            columns(),
            table(shipped),
            no_places(shipped),
            by_market(shipped),
            certified_records.table(),
        )
    )
    return BETWEEN.sub(lambda mark: f"{mark[1]}{next(made)}\n{mark[2]}", text)


def take(folders: list[Path]) -> None:
    """Makes the entries and the figure from the folders of finished leagues."""
    for folder in reversed(folders):
        study = read_study(folder)
        for name in study.scenario["study"]["auctions"]:
            entry = entries.entry_of(name, study.rows, study.scenario["study"]["size"])
            entries.write_entry(ENTRIES / entries.file_name(name), entry)
    shipped = entries.shipped_entries()
    named = ({"auction": _name(entry), "place": entry["place"]} for entry in shipped)
    rows = [name | entry["whole"] for name, entry in zip(named, shipped, strict=True)]
    league_figure.draw(rows, FIGURE)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        take([Path(folder) for folder in sys.argv[1:]])
    PAGE.write_text(page(PAGE.read_text()))
