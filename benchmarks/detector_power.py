"""The best detector beside the bound, for nothing but noise: `python -m benchmarks.detector_power`.

It writes benchmarks/detector_power.md. `--messages N` (20,000) is the number of messages of cheats,
and as many of honest owners, for every case. The detector is the check `likelihood-ratio` with
alignment 1: the broker knows the gradient. Its option `noise` names what cheats send: zeros, or a
random direction, as the cheat that comes with the package does. Under PrivUnit the exact power of
the best test against a random direction is known, and under Laplace against zeros. Against a random
direction under Laplace the best test is the likelihood ratio of the honest gradient and a mean over
directions. Its power is counted here, without the code of the check: with `DIRECTIONS` directions
and messages of its own, from the cheat itself.

It stops with an error if detector and best test are more than 2 percentage points apart in any row,
or if honest owners are accused at more than the level and four standard errors.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from flmarket_sim.checks.check import LEVEL, Evidence
from flmarket_sim.checks.likelihood_ratio import LikelihoodRatio, Noise
from flmarket_sim.checks.shifted_laplace import best_power, curves, one_coordinate_power
from flmarket_sim.checks.undetectable import cap_chances, most_power, two_events_power
from flmarket_sim.plugins.registry import perturbations
from flmarket_sim.strategy.cheats.noise import NothingButNoise

Floats = NDArray[np.float64]
LOSSES = (0.5, 1.0, 2.0, 8.0)
RANDOM, ZEROS = "a random direction", "zeros"
CASES = (  # perturbation, coordinates, the gradient, what cheats send
    ("priv-unit", 10, "any direction", RANDOM),
    ("priv-unit", 650, "any direction", RANDOM),
    ("laplace", 10, "one coordinate", ZEROS),
    ("laplace", 10, "one coordinate", RANDOM),
    ("laplace", 10, "all coordinates alike", ZEROS),
    ("laplace", 10, "all coordinates alike", RANDOM),
    ("laplace", 64, "all coordinates alike", ZEROS),
    ("laplace", 64, "all coordinates alike", RANDOM),
)
ROWS, DRAWS = 1000, 100_000
DIRECTIONS = 1000
WITHIN = 0.02  # of the best test's power
COMMAND = "python -m benchmarks.detector_power"


def bound(name: str, loss: float, dimension: int, gradient: str, level: float) -> float:
    """The exact power of the best test: PrivUnit and a random direction, Laplace and zeros.

    For many coordinates under Laplace it is the upper end of its interval.
    """
    if name == "priv-unit":
        return float(two_events_power(level, *cap_chances(loss, dimension)))
    if gradient == "one coordinate":
        return float(one_coordinate_power(level, loss / 2))
    return float(best_power(curves(np.full(dimension, loss / 2 / dimension)), level).most[0])


def direction(gradient: str, dimension: int) -> Floats:
    """(D,) the honest gradient's direction."""
    return np.eye(dimension)[0] if gradient == "one coordinate" else np.ones(dimension)


def nothing_but_noise(count: int, dimension: int, rng: np.random.Generator) -> Floats:
    """(count, D) what the shipped cheat puts in the place of gradients."""
    rules: Any = SimpleNamespace(dimension=dimension, clip=1.0)
    view: Any = SimpleNamespace(owners=np.arange(count), rng=rng, rules=rules)
    return NothingButNoise().updates(view, np.zeros((count, dimension)))


def measured(
    name: str,
    loss: float,
    dimension: int,
    gradient: str,
    sent: str,
    level: float,
    messages: int,
    noise: Noise | None = None,
) -> tuple[float, float]:
    """The shares of honest owners and of cheats whom the detector accuses.

    It looks for `noise`, or else for what is sent.
    """
    rng = np.random.default_rng([dimension, int(8 * loss)])
    looked_for = noise or ("zeros" if sent == ZEROS else "random-direction")
    made, check = perturbations.create(name), LikelihoodRatio(1.0, DRAWS, looked_for)
    reference = direction(gradient, dimension)
    losses, size = np.full(2 * messages, loss), np.full(2 * messages, 10.0)
    owner = np.arange(2 * messages)
    honest = made.prepare(np.tile(1e9 * reference, (messages, 1)), 1.0)
    cheats = made.prepare(nothing_but_noise(messages, dimension, rng), 1.0)
    if sent == ZEROS:
        cheats = np.zeros_like(honest)
    released = [made.release(part, losses[:messages], rng, 1.0) for part in (honest, cheats)]
    sent = np.concatenate(released)
    evidence = Evidence(sent, losses, size, 1.0, made, owner, (), reference)
    accused = check.p_values(evidence) <= level
    return float(accused[:messages].mean()), float(accused[messages:].mean())


def mixture_power(loss: float, dimension: int, gradient: str, level: float, messages: int) -> float:
    """The power, counted, of the likelihood ratio against random directions under Laplace."""
    rng = np.random.default_rng([dimension, int(8 * loss), 2])
    made, losses = perturbations.create("laplace"), np.full(messages, loss)
    honest = made.prepare(1e9 * direction(gradient, dimension)[None], 1.0)
    directions = made.prepare(nothing_but_noise(DIRECTIONS, dimension, rng), 1.0)
    cheats = made.prepare(nothing_but_noise(messages, dimension, rng), 1.0)
    scores = []
    for gradients in (np.tile(honest, (messages, 1)), cheats):
        released = made.release(gradients, losses, rng, 1.0)
        parts = [
            log_densities(part, directions, loss) - log_densities(part, honest, loss)
            for part in np.array_split(released, -(-messages // ROWS))
        ]
        scores.append(np.concatenate(parts))
    order = np.sort(scores[0])
    return float((scores[1] > order[int(np.ceil((1 - level) * messages)) - 1]).mean())


def log_densities(messages: Floats, gradients: Floats, loss: float) -> Floats:
    """(n,) log of the mean density of Laplace messages (n, D) around gradients (k, D).

    The same constant is left out for all.
    """
    apart = np.zeros((len(messages), len(gradients)))
    for column, centre in zip(messages.T, gradients.T, strict=True):
        apart += np.abs(column[:, None] - centre)
    return np.asarray(logsumexp(-0.5 * loss * apart, axis=1) - np.log(len(gradients)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=20_000)
    messages = parser.parse_args().messages
    lines = [
        "# The best detector beside the bound",
        "",
        f"Written by `{COMMAND} --messages {messages}`: percent of",
        f"{messages:,} messages accused at a level of {100 * LEVEL:g} %. Cheats send nothing",
        "but noise: the release of a random direction, as `nothing-but-noise` does, or of",
        "zeros. The power of the best test is exact, but for random directions under Laplace:",
        f"there it is counted, for the likelihood ratio with {DIRECTIONS:,} directions that the",
        "check does not have. The check is `likelihood-ratio` with `alignment = 1` and the `noise`",
        "that cheats send.",
        "",
        "| perturbation | D | gradient | cheats send | e | honest | cheats | best test "
        "| any test by e alone |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, dimension, gradient, sent in CASES:
        for loss in LOSSES:
            honest, cheats = measured(name, loss, dimension, gradient, sent, LEVEL, messages)
            if name == "priv-unit" or sent == ZEROS:
                best = bound(name, loss, dimension, gradient, LEVEL)
            else:
                best = mixture_power(loss, dimension, gradient, LEVEL, messages)
            most = float(most_power(LEVEL, loss))
            row = f"| {name} | {dimension} | {gradient} | {sent} | {loss:g} | "
            row += " | ".join(f"{100 * x:.2f}" for x in (honest, cheats, best, most)) + " |"
            print(row, flush=True)
            lines.append(row)
            if abs(cheats - best) > WITHIN:
                sys.exit("the detector is not within 2 percentage points of the best test")
            if honest > LEVEL + 4 * np.sqrt(LEVEL / messages):
                sys.exit("the detector accuses too many honest owners")
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
