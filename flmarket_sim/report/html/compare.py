"""Several inputs on one page: charts with a series each, numbers side by side, paired differences where worlds agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flmarket_sim.report.html.parts import POINTS, Chart, Series, Source, Table, evenly
from flmarket_sim.sweep.paired_differences import paired


def distinct(sources: list[Source]) -> list[Source]:
    """The same, with labels that tell them apart."""
    seen: dict[str, int] = {}
    found = []
    for source in sources:
        seen[source.label] = seen.get(source.label, 0) + 1
        number = seen[source.label]
        found.append(source if number == 1 else replace(source, label=f"{source.label} ({number})"))
    return found


def charts(sources: list[Source]) -> list[Chart]:
    """Charts of the same id, kind and x-axis become one. A series is called after its input, and by its own name where that has several."""
    merged: dict[tuple[str, str, str], list[tuple[Source, Chart]]] = {}
    for source in sources:
        for chart in source.charts:
            merged.setdefault((chart.id, chart.kind, chart.x_label), []).append((source, chart))
    found: list[Chart] = []
    for pieces in merged.values():
        model = pieces[0][1]
        if model.id in {chart.id for chart in found}:  # another x-axis: a chart of its own
            model = replace(model, id=f"{model.id}-{len(found)}")
        if model.kind == "timeline":  # lanes of two runs do not fit into one another
            found += [
                replace(chart, id=f"{chart.id}-{k}", title=f"{chart.title}: {s.label}")
                for k, (s, chart) in enumerate(pieces)
            ]
            continue
        series = []
        notes = dict.fromkeys(chart.note for _, chart in pieces if chart.note)
        for source, chart in pieces:
            for one in chart.series:
                name = source.label if len(chart.series) == 1 else f"{source.label}: {one.name}"
                kept = evenly(range(len(one.points)), max(2, POINTS // len(pieces)))
                series.append(
                    Series(
                        name,
                        [one.points[k] for k in kept],
                        [one.labels[k] for k in kept] if one.labels else [],
                    )
                )
        found.append(replace(model, series=series, note=" ".join(notes) if len(notes) == 1 else ""))
    return found


def tables(sources: list[Source]) -> list[Table]:
    found = []
    for kind in dict.fromkeys(source.kind for source in sources):
        group = [source for source in sources if source.kind == kind and source.measures]
        if len(group) > 1:
            found += [_side_by_side(kind, group), *_differences(kind, group)]
    return found


def settings(sources: list[Source]) -> Table:
    """Every setting of every input; those that differ come first."""
    names = list(dict.fromkeys(name for source in sources for name in source.settings))
    rows: list[list[Any]] = []
    for name in names:
        values = [source.settings.get(name, "") for source in sources]
        rows.append([name, "yes" if len(set(values)) > 1 else "", *values])
    rows.sort(key=lambda row: not row[1])
    return Table(
        "settings", "Settings", ["setting", "differs", *(source.label for source in sources)], rows
    )


def _side_by_side(kind: str, group: list[Source]) -> Table:
    names = [name for name in group[0].measures if all(name in source.measures for source in group)]
    rows: list[list[Any]] = [[name, *(source.measures[name] for source in group)] for name in names]
    rows = [row for row in rows if any(cell.mean == cell.mean for cell in row[1:])]
    note = f"Means of {group[0].replications}, with 95 % intervals over them."
    return Table(
        f"side-{kind}",
        f"Side by side: {kind}s",
        [f"of the {kind}", *(source.label for source in group)],
        rows,
        note,
    )


def _differences(kind: str, group: list[Source]) -> list[Table]:
    """Every input against the first; not where the worlds differ."""
    first = group[0]
    others = [source for source in group[1:] if source.world and source.world == first.world]
    if not others:
        return []
    rows: list[list[Any]] = []
    for name, units in first.units.items():
        found = [paired(units, source.units.get(name, {})) for source in others]
        if any(one.mean == one.mean for one in found):
            rows.append([name, *found])
    left = len(group) - 1 - len(others)
    over = first.replications
    note = f"Same owners, same luck: differences are taken in the same {over}; 95 % intervals are Student's, over {over}."
    if left:
        note += (
            f" {left} more met another world (seed, owners or budgets), so no difference is taken."
        )
    columns = [f"minus {first.label}", *(source.label for source in others)]
    return [Table(f"paired-{kind}", "Paired differences", columns, rows, note)]
