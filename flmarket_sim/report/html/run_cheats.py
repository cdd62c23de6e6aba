"""Charts and tables of a run in which owners cheat after a sale, or the broker looks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flmarket_sim.eventlog.cheat_earnings import cheat_earnings
from flmarket_sim.eventlog.summary import watched
from flmarket_sim.report.html.parts import Chart, Series, Table

NOTE = (
    "Only the simulator knows who cheats. Kept money is payments less lost deposits and true "
    "costs; records lose what their messages truly reveal."
)


def cheats(path: Path, scenario: dict[str, Any]) -> tuple[list[Chart], list[Table]]:
    """What each cheat kept a sale, and how often it was accused."""
    found = cheat_earnings(path) if watched(scenario) else {}
    if not found:
        return [], []
    rows: list[list[Any]] = []
    bars: list[list[Any]] = []
    for name, of in found.items():
        kept = (of["paid"] - of["forfeited"] - of["cost"]) / of["sales"]
        accused = of["accused"] / of["judged"] if of["judged"] else None
        rows.append([name, of["sales"], accused, of["sold"], of["lost"], of["paid"], kept])
        bars.append([name, kept, kept, kept])
    heads = ["after the sale", "sales", "share accused", "privacy sold", "privacy lost", "paid"]
    chart = Chart(
        "cheats", "What cheating after the sale leaves", "bars", "after the sale",
        "money kept a sale", [Series("kept", bars)], NOTE,
    )  # fmt: skip
    table = Table("cheats", "Cheats after the sale", [*heads, "kept a sale"], rows, NOTE)
    return [chart], [table]
