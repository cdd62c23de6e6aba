"""Several inputs on one page: common charts, numbers side by side, and paired differences.

Differences are taken only between inputs of the same world.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flmarket_sim.report.html.labels import labels_by_difference
from flmarket_sim.report.html.parts import POINTS, Chart, Series, Source, Table, evenly
from flmarket_sim.sweep.paired_differences import paired


def labelled(sources: list[Source]) -> list[Source]:
    """The sources with labels that differ: inputs of one kind by the settings that differ."""
    named = [replace(source, folder=source.label) for source in sources]
    if len(named) < 2:
        return named
    folders = [source.label for source in named]
    labels = dict(enumerate(labels_by_difference([{} for _ in named], folders)))
    for kind in dict.fromkeys(source.kind for source in named):
        places = [place for place, source in enumerate(named) if source.kind == kind]
        if len(places) > 1:
            settings = [named[place].settings for place in places]
            chosen = labels_by_difference(settings, [folders[place] for place in places])
            labels |= dict(zip(places, chosen, strict=True))
    return [replace(source, label=labels[place]) for place, source in enumerate(named)]


def charts(sources: list[Source]) -> list[Chart]:
    """Merges charts of the same id, kind and x-axis.

    A series has the name of its input, and its own name too if the input has several series.
    """
    merged: dict[tuple[str, str, str], list[tuple[Source, Chart]]] = {}
    for source in sources:
        for chart in source.charts:
            merged.setdefault((chart.id, chart.kind, chart.x_label), []).append((source, chart))
    common: list[Chart] = []
    for pieces in merged.values():
        model = pieces[0][1]
        if model.id in {chart.id for chart in common}:  # another x-axis: a separate chart
            model = replace(model, id=f"{model.id}-{len(common)}")
        if model.kind == "timeline":  # lanes of two runs are not comparable
            common += [
                replace(chart, id=f"{chart.id}-{k}", title=f"{chart.title}: {s.label}")
                for k, (s, chart) in enumerate(pieces)
            ]
            continue
        series = []
        notes = dict.fromkeys(chart.note for _, chart in pieces if chart.note)
        for source, chart in pieces:
            own = [line for line in chart.series if len(pieces) == 1 or not line.reference]
            for line in own:
                name = source.label if len(chart.series) == 1 else f"{source.label}: {line.name}"
                sample = evenly(range(len(line.points)), max(2, POINTS // len(pieces)))
                series.append(
                    Series(
                        name,
                        [line.points[k] for k in sample],
                        [line.labels[k] for k in sample] if line.labels else [],
                        line.reference,
                    )
                )
        common.append(
            replace(model, series=series, note=" ".join(notes) if len(notes) == 1 else "")
        )
    return common


def tables(sources: list[Source]) -> list[Table]:
    compared = []
    for kind in dict.fromkeys(source.kind for source in sources):
        group = [source for source in sources if source.kind == kind and source.measures]
        if len(group) > 1:
            compared += [_side_by_side(kind, group), *_differences(kind, group)]
    return compared


def settings(sources: list[Source]) -> Table:
    """All settings of all inputs; those that differ come first."""
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
    """Differences of every input from the first, if their worlds agree."""
    first = group[0]
    same_world = [source for source in group[1:] if source.world and source.world == first.world]
    if not same_world:
        return []
    rows: list[list[Any]] = []
    for name, units in first.units.items():
        estimates = [paired(units, source.units.get(name, {})) for source in same_world]
        if any(estimate.mean == estimate.mean for estimate in estimates):
            rows.append([name, *estimates])
    left = len(group) - 1 - len(same_world)
    over = first.replications
    note = (
        f"Same owners, same luck: differences are taken in the same {over}; "
        f"95 % intervals are Student's, over {over}."
    )
    if left:
        note += (
            f" {left} more met another world (seed, owners or budgets), so no difference is taken."
        )
    columns = [f"minus {first.label}", *(source.label for source in same_world)]
    return [Table(f"paired-{kind}", "Paired differences", columns, rows, note)]
