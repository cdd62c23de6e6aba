"""The best detector beside the bound, for nothing but noise: `python -m benchmarks.detector_power`.

It writes benchmarks/detector_power.md. `--messages N` (20,000) is the number of messages of cheats,
and as many of honest owners, for every case. The detector is the check `likelihood-ratio` with
alignment 1: the broker knows the gradient. The bound is the exact power of the best test at the
level. It stops with an error if the two are more than 2 percentage points apart, or if honest
owners are accused at more than the level and four standard errors.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.checks.check import LEVEL, Evidence
from flmarket_sim.checks.likelihood_ratio import LikelihoodRatio
from flmarket_sim.checks.shifted_laplace import best_power, curves, one_coordinate_power
from flmarket_sim.checks.undetectable import cap_chances, most_power, two_events_power
from flmarket_sim.plugins.registry import perturbations

Floats = NDArray[np.float64]
LOSSES = (0.5, 1.0, 2.0, 8.0)
CASES = (  # perturbation, coordinates, the gradient
    ("priv-unit", 10, "any direction"),
    ("priv-unit", 650, "any direction"),
    ("laplace", 10, "one coordinate"),
    ("laplace", 10, "all coordinates alike"),
    ("laplace", 64, "all coordinates alike"),
)
ROWS, DRAWS = 1000, 100_000
COMMAND = "python -m benchmarks.detector_power"


def bound(name: str, loss: float, dimension: int, gradient: str, level: float) -> float:
    """The exact power of the best test; for many coordinates the upper end of its interval."""
    if name == "priv-unit":
        return float(two_events_power(level, *cap_chances(loss, dimension)))
    if gradient == "one coordinate":
        return float(one_coordinate_power(level, loss / 2))
    return float(best_power(curves(np.full(dimension, loss / 2 / dimension)), level).most[0])


def measured(
    name: str, loss: float, dimension: int, gradient: str, level: float, messages: int
) -> tuple[float, float]:
    """The shares of honest owners and of cheats whom the detector accuses."""
    rng = np.random.default_rng([dimension, int(8 * loss)])
    made, check = perturbations.create(name), LikelihoodRatio(1.0, DRAWS)
    one = gradient == "one coordinate"
    reference = np.eye(dimension)[0] if one else np.ones(dimension)
    losses, size = np.full(messages, loss), np.full(messages, 10.0)
    owner = np.arange(messages)
    honest = made.prepare(np.tile(1e9 * reference, (messages, 1)), 1.0)
    noise = made.prepare(1e9 * rng.normal(size=honest.shape), 1.0)
    if name == "laplace":
        noise = np.zeros_like(honest)
    shares = []
    for gradients in (honest, noise):
        sent = made.release(gradients, losses, rng, 1.0)
        evidence = Evidence(sent, losses, size, 1.0, made, owner, (), reference)
        shares.append(float((check.p_values(evidence) <= level).mean()))
    return shares[0], shares[1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=20_000)
    messages = parser.parse_args().messages
    lines = [
        "# The best detector beside the bound",
        "",
        f"Written by `{COMMAND} --messages {messages}`: percent of",
        f"{messages:,} messages accused at a level of {100 * LEVEL:g} %. Cheats send nothing",
        "but noise. Under PrivUnit that is the release of a random",
        "direction, under Laplace that of zeros.",
        "",
        "| perturbation | D | gradient | e | honest | cheats | best test | any test by e alone |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, dimension, gradient in CASES:
        for loss in LOSSES:
            honest, cheats = measured(name, loss, dimension, gradient, LEVEL, messages)
            best = bound(name, loss, dimension, gradient, LEVEL)
            most = float(most_power(LEVEL, loss))
            row = f"| {name} | {dimension} | {gradient} | {loss:g} | "
            row += " | ".join(f"{100 * x:.2f}" for x in (honest, cheats, best, most)) + " |"
            print(row, flush=True)
            lines.append(row)
            if abs(cheats - best) > 0.02:
                sys.exit("the detector is not within 2 percentage points of the bound")
            if honest > LEVEL + 4 * np.sqrt(LEVEL / messages):
                sys.exit("the detector accuses too many honest owners")
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
