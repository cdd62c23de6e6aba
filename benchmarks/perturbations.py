"""Mean, variance, time and bytes of every perturbation: `python -m benchmarks.perturbations`.

It writes benchmarks/perturbations.md. `--draws N` (10^5) says how often each gradient is released
in 650 dimensions; in few dimensions, where one release tells less, it is four times as often.
It stops if a variance is 1 % off or a mean is 5 standard errors off.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flmarket_sim.perturbation.perturbation import message_bytes
from flmarket_sim.plugins.registry import perturbations

CASES: list[tuple[str, dict[str, Any]]] = [
    ("laplace", {}),
    ("priv-unit", {}),
    ("priv-unit", {"length": "unit"}),
    ("proj-unit", {}),
    ("proj-unit", {"length": "unit"}),
    ("proj-unit", {"size": 5}),
    ("duchi-l2", {}),
    ("duchi-linf", {}),
    ("piecewise", {}),
    ("gaussian", {}),
]
DIMENSIONS, LOSSES = (2, 10, 650), (0.5, 1.0, 2.0, 4.0)
FEW, MORE = 100, 4  # in fewer dimensions than that, so many times as many releases
ROWS = 2**21  # numbers in memory at once
COMMAND = "python -m benchmarks.perturbations"


@dataclass(frozen=True)
class Measured:
    """`share` is the variance over the stated one; `score` is how far off the mean is.

    The score is in standard errors, the largest of the height along the gradient, of the sum of all
    coordinates, and of the whole vector (its distance over what chance gives on average).
    """

    share: float
    share_error: float
    score: float
    seconds: float
    bytes: int


def measured(
    name: str, options: dict[str, Any], dimension: int, loss: float, draws: int, clip: float = 1.5
) -> Measured:
    """The largest share of variance, and the largest score, over gradients of the domain.

    They are no gradient and a corner; in few dimensions also a long one along an axis, and one in
    the middle.
    """
    made = perturbations.create(name, **options)
    rng = np.random.default_rng([dimension, int(8 * loss), draws])
    mixed = rng.normal(size=dimension)
    ends = np.stack([0 * mixed, np.ones(dimension) * -99, np.eye(dimension)[0] * 99, 0.1 * mixed])
    ends = ends[: 2 if dimension > FEW else 4]
    stated = float(made.variance(loss, dimension, clip))
    shares, scores, seconds = [], [], 0.0
    for gradient in made.prepare(ends, clip):
        total, squares, moments = np.zeros(dimension), [], []
        left = draws
        while left:
            count = min(left, max(1, ROWS // dimension))
            rows, losses = np.tile(gradient, (count, 1)), np.full(count, loss)
            begin = time.perf_counter()
            sent = made.release(rows, losses, rng, clip)
            seconds += time.perf_counter() - begin
            sent -= gradient
            total += sent.sum(axis=0)
            squares.append(np.einsum("ij,ij->i", sent, sent))
            moments.append(np.stack([sent @ gradient, sent.sum(axis=1)]))
            left -= count
        length = np.concatenate(squares) / stated
        shares.append((length.mean(), length.std() / np.sqrt(draws)))
        columns = np.concatenate(moments, axis=1)
        error = np.maximum(columns.std(axis=1) / np.sqrt(draws), 1e-12)
        whole = np.square(total).sum() / draws / stated / length.mean()
        scores += [*np.abs(columns.mean(axis=1) / error), np.sqrt(whole)]
    share, error = max(shares)
    size = message_bytes(made, dimension, loss)
    return Measured(share, error, max(scores), seconds / draws / len(ends), size)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=100_000)
    draws = parser.parse_args().draws
    lines = [
        "# Perturbations: what was measured beside what they state",
        "",
        f"Written by `{COMMAND} --draws {draws}`. A row is about",
        f"{draws:,} releases of each of two gradients in 650 dimensions, and {MORE * draws:,} of",
        "each of four in fewer. Variance is the largest over the stated one; z is the largest",
        "distance of a mean from its gradient in standard errors; time is for one release of many.",
        "",
        "| perturbation | D | e | variance / stated | z | us | bytes |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, options in CASES:
        text = ", ".join([name, *(f"{key} = {value}" for key, value in options.items())])
        for dimension in DIMENSIONS:
            for loss in LOSSES:
                count = draws if dimension > FEW else MORE * draws
                found = measured(name, options, dimension, loss, count)
                row = (
                    f"| {text} | {dimension} | {loss:g} | {found.share:.4f} | {found.score:.1f} "
                    f"| {1e6 * found.seconds:.1f} | {found.bytes:,} |"
                )
                print(row, flush=True)
                assert abs(found.share - 1) < 0.01, "the variance is not the stated one"
                assert found.score < 5, "the mean is not the gradient"
                lines.append(row)
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
