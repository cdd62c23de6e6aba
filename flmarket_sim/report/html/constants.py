"""Charts that say nothing: one value everywhere. A page has a sentence in their place."""

from __future__ import annotations

from collections.abc import Sequence

from flmarket_sim.report.html.parts import Chart, short


def without_constants(charts: Sequence[Chart]) -> tuple[list[Chart], list[str]]:
    """The charts that show something, and a sentence for each of the others."""
    kept, sentences = [], []
    for chart in charts:
        sentence = _same_lanes(chart) if chart.kind == "timeline" else _one_value(chart)
        if sentence:
            sentences.append(sentence)
        else:
            kept.append(chart)
    return kept, list(dict.fromkeys(sentences))


def _one_value(chart: Chart) -> str:
    """The sentence for a chart whose series are all constant and equal; else nothing."""
    points = [point for series in chart.series for point in series.points]
    if not points or any(point[1:] != points[0][1:] for point in points):
        return ""
    if len(points[0]) > 2 and points[0][2] is not None and points[0][2] != points[0][1]:
        return ""  # its interval is worth a figure
    value = points[0][1]
    what = chart.y_label[:1].upper() + chart.y_label[1:]
    if not isinstance(value, int | float):
        return ""
    told = short(float(value), chart.percent)
    if len(points) == 1:
        return f"{what} is {told}; it has no figure because there is only this value."
    return f"{what} is {told} throughout; it has no figure for that reason."


def _same_lanes(chart: Chart) -> str:
    """The sentence for a timeline in which every lane is the same; else nothing."""
    lanes: dict[str, list[tuple[str, str, str]]] = {}
    for series in chart.series:
        for start, end, lane in series.points:
            lanes.setdefault(lane, []).append((series.name, short(start), short(end)))
    if len(lanes) < 2 or len({tuple(lane) for lane in lanes.values()}) > 1:
        return ""
    first = next(iter(lanes))
    spans = [
        (series.name, start, end)
        for series in chart.series
        for start, end, lane in series.points
        if lane == first
    ]
    phases = ", ".join(f"{name} {short(end - start)}" for name, start, end in spans)
    whole = short(max(end for _, _, end in spans))
    return f"Every round takes {whole} simulated seconds ({phases}); it has no figure."
