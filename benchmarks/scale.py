"""How time, memory and bytes grow with owners, bidders, rounds and the size of the model.

`python -m benchmarks scale [--quick]`, or `python -m benchmarks.scale [--turns N]`. Every
measurement is a separate process (`scale_case`). The sides take turns; the median counts. A side
that needs more than LIMIT seconds of processor time at some size is not measured at this size and
beyond; nothing is extrapolated.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.scale_axes import AXES, Axis, Side

TURNS = 3
LIMIT = 40
LONG = 6.0  # seconds; longer cases are measured once
QUANTITIES = {"seconds": "time", "memory": "memory", "bytes": "log"}
FIGURES = Path(__file__).with_name("figures")
Measurements = dict[int, dict[str, float]]


def measure(case: dict[str, object]) -> dict[str, float] | None:
    """The numbers of one process, or None if it reached LIMIT seconds of processor time."""
    command = [sys.executable, "-m", "benchmarks.scale_case", json.dumps(case), str(LIMIT)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    if done.returncode == -signal.SIGXCPU:
        return None
    if done.returncode:
        sys.exit(f"scale: {json.dumps(case)} failed")
    return dict(json.loads(done.stdout))


def measured(axis: Axis, quick: bool, turns: int) -> dict[str, Measurements]:
    """Medians by side and size; the sides take turns at each size."""
    medians: dict[str, Measurements] = {side.name: {} for side in axis.sides}
    open_sides = {side.name for side in axis.sides}
    for size in sorted({size for side in axis.sides for size in side.sizes}):
        several: dict[str, list[dict[str, float]]] = {}
        for _ in range(turns):
            for side in axis.sides:
                if size not in sizes(side, quick) or side.name not in open_sides:
                    continue
                if side.name in several and several[side.name][0]["seconds"] > LONG:
                    continue
                numbers = measure(side.case(size))
                if numbers is None:
                    open_sides.discard(side.name)
                else:
                    several.setdefault(side.name, []).append(numbers)
        for name, seen in several.items():
            if name in open_sides:
                medians[name][size] = {
                    key: statistics.median(numbers[key] for numbers in seen) for key in seen[0]
                }
                print(
                    f"   {axis.name} {size:>9,} {name}: {medians[name][size]['seconds']:.3f} s",
                    file=sys.stderr,
                    flush=True,
                )
    return medians


def sizes(side: Side, quick: bool) -> tuple[int, ...]:
    return side.sizes[:-1] if quick and len(side.sizes) > 2 else side.sizes


def exponent(rows: Measurements, key: str) -> float:
    """Slope in a log-log plot, over the sizes within a factor of ten of the largest."""
    points = [(size, row[key]) for size, row in sorted(rows.items()) if row.get(key, 0) > 0]
    upper = [point for point in points if point[0] * 10.001 >= points[-1][0]]
    if len(upper) < 2:
        return math.nan
    x, y = np.log(np.array(upper, float)).T
    return float(np.polyfit(x, y, 1)[0])


def chapter(axis: Axis, medians: dict[str, Measurements], quick: bool) -> str:
    lines = [f"### {axis.title}", "", axis.setting, ""]
    if not quick:
        lines += [f"![{axis.title}: time, memory and bytes](figures/scale_{axis.name}.png)", ""]
    lines += [
        f"| {axis.label} | side | time | memory above start | log on disk |",
        "|---|---|---|---|---|",
    ]
    for side in axis.sides:
        rows = medians[side.name]
        for size, row in sorted(rows.items()):
            lines.append(
                f"| {size:,} | {side.name} | {seconds(row)} | {amount(row, 'memory')} "
                f"| {amount(row, 'bytes')} |"
            )
        missing = [
            size
            for size in sizes(side, quick)
            if size not in rows and (not rows or size > max(rows))
        ]
        if missing:
            lines.append(
                f"| {missing[0]:,} | {side.name} | not ended after {LIMIT} s, "
                "imports included | | |"
            )
        slopes = [exponent(rows, key) if rows else math.nan for key in QUANTITIES]
        exponents = " | ".join("" if math.isnan(s) else f"**{s:.2f}**" for s in slopes)
        lines.append(f"| exponent | {side.name} | {exponents} |")
    return "\n".join([*lines, "", *comparisons(axis, medians)])


def comparisons(axis: Axis, medians: dict[str, Measurements]) -> list[str]:
    """Ratios of sides at the largest size that both of them have."""
    sentences = []
    for side in axis.sides[1:]:
        if not side.name.startswith(("the authors", "before", "no learning, before")):
            continue
        base = (
            axis.sides[1]
            if side.name.startswith("the authors") and axis.name in ("bidders", "rounds")
            else axis.sides[0]
        )
        both = set(medians[base.name]) & set(medians[side.name])
        if both:
            size = max(both)
            ours, rival = medians[base.name][size], medians[side.name][size]
            memory = (
                f", memory above start {rival['memory'] / ours['memory']:.1f} times"
                if ours["memory"] > 0
                else ""
            )
            ratio = rival["seconds"] / ours["seconds"]
            sentences.append(
                f"At {size:,}, *{side.name}* against *{base.name}*: time {ratio:.1f} times{memory}."
            )
    return sentences


def seconds(row: dict[str, float]) -> str:
    return f"{row['seconds']:.2f} s" if row["seconds"] >= 0.1 else f"{row['seconds'] * 1000:.1f} ms"


def amount(row: dict[str, float], key: str) -> str:
    if row.get(key, 0) <= 0:
        return ""
    return f"{row[key] / 1e6:.1f} MB" if row[key] >= 1e5 else f"{row[key] / 1e3:.0f} kB"


def worst(by_axis: dict[str, dict[str, Measurements]]) -> str:
    """The largest exponents of the present package, in descending order."""
    slopes = [
        (exponent(rows, key), f"{quantity} by {axis.label} ({side.name})")
        for axis in AXES
        if axis.name in by_axis
        for side in axis.sides
        if not side.name.startswith(("the authors", "before", "no learning, before"))
        for key, quantity in QUANTITIES.items()
        if (rows := by_axis[axis.name][side.name])
    ]
    largest = sorted((pair for pair in slopes if not math.isnan(pair[0])), reverse=True)[:3]
    return (
        "Largest exponents of the package now: "
        + "; ".join(f"{slope:.2f}, {what}" for slope, what in largest)
        + "."
    )


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--quick",
        action="store_true",
        help="without the largest sizes, in one turn, without figures",
    )
    options.add_argument(
        "--turns",
        type=int,
        default=TURNS,
        help="measurements of each size, of which the median counts",
    )
    options.add_argument(
        "--axis",
        choices=[axis.name for axis in AXES],
        action="append",
        help="only this one; may be repeated",
    )
    chosen = options.parse_args()
    axes = [axis for axis in AXES if chosen.axis is None or axis.name in chosen.axis]
    quick, turns = chosen.quick, 1 if chosen.quick else chosen.turns
    by_axis = {}
    for axis in axes:
        by_axis[axis.name] = measured(axis, quick, turns)
    if not quick:
        from benchmarks.scale_figures import draw

        FIGURES.mkdir(exist_ok=True)
        for axis in axes:
            draw(axis, by_axis[axis.name], FIGURES / f"scale_{axis.name}.png")
    often = (
        "once"
        if turns == 1
        else f"medians of {turns} turns (one, where it takes more than {LONG:.0f} s)"
    )
    print(
        f"""## Scale: how time, memory and bytes grow

Each measurement is a process of its own, arithmetic on one thread; {often}. Time is processor \
time. Memory is the peak
resident memory less what the process had before the market (imports); its small values are steps \
of the allocator. An exponent is the slope
between the sizes within a factor of ten of the largest: 1 is linear. The authors' way is \
`authors_way.py`: what they do, written anew,
without a clock and a log. Lines called *before* patch in what the package did until this was \
measured (`former.py`).

{worst(by_axis)}
"""
    )
    print("\n\n".join(chapter(axis, by_axis[axis.name], quick) for axis in axes))


if __name__ == "__main__":
    main()
