"""What robust rules cost honest markets, and what they save where some owners send poison.

Owners sell privacy losses between 0.5 and 8 and release a gradient of length 1, each her own: a
common direction and one of hers of half the length. They use `priv-unit`. Weights are those of
`opt-aggr` for equally many records. An entry is the mean squared error of the delivered gradient to
the noiseless mean of the gradients of all owners, over that of the weighted sum in the honest
market. A fifth of the owners send their release turned around; or turned around and ten times as
long. Seconds are those of one combination of 100 messages of 7,850 coordinates.

`python -m benchmarks.robust_rules [DRAWS]` takes about a minute.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from numpy.typing import NDArray

from flmarket_sim import aggregation
from flmarket_sim.aggregation.robust.robust_rule import combined
from flmarket_sim.aggregation.rule import weights_in
from flmarket_sim.perturbation.perturbation import vector_error
from flmarket_sim.plugins import registry

Floats = NDArray[np.float64]
OWNERS, DIMENSION, DRAWS = 50, 650, 40
LARGE = 100, 7_850
CHEATS = 0.2
ATTACKS = {"nobody": 1.0, "a fifth turns": -1.0, "a fifth turns, 10 times as long": -10.0}
Messages = tuple[Floats, Floats, Floats, Floats]


def market(owners: int, dimension: int, rng: np.random.Generator) -> Messages:
    """Messages, weights, variances, and the noiseless mean gradient."""
    own = rng.normal(size=(owners, dimension)) / dimension**0.5
    common = np.ones(dimension) / dimension**0.5
    gradients = common + 0.5 * own
    gradients /= np.linalg.norm(gradients, axis=1, keepdims=True)
    perturbation = registry.perturbations.create("priv-unit")
    loss = rng.uniform(0.5, 8.0, owners)
    error = vector_error(perturbation, dimension)
    rule = aggregation.create("opt-aggr")
    weights = weights_in(rule, loss[None], np.ones((1, owners)), error)[0]
    messages = perturbation.release(gradients, loss, rng)
    return messages, weights, error.variance(loss), gradients.mean(axis=0)


def errors(draws: int) -> dict[str, dict[str, float]]:
    """Mean squared errors by rule and attack."""
    sums = {name: dict.fromkeys(ATTACKS, 0.0) for name in registry.robust_rules.names()}
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        messages, weights, variance, truth = market(OWNERS, DIMENSION, rng)
        cheats = rng.permutation(OWNERS)[: int(CHEATS * OWNERS)]
        for attack, factor in ATTACKS.items():
            sent = messages.copy()
            sent[cheats] *= factor
            for name in sums:
                got = combined(registry.robust_rules.create(name), sent, weights, variance)
                sums[name][attack] += float(np.square(got - truth).sum()) / draws
    return sums


def seconds() -> dict[str, float]:
    """The fastest of three combinations by each rule."""
    messages, weights, variance, _ = market(*LARGE, np.random.default_rng(0))
    fastest = {}
    for name in registry.robust_rules.names():
        rule, times = registry.robust_rules.create(name), []
        for _ in range(3):
            begin = time.perf_counter()
            combined(rule, messages, weights, variance)
            times.append(time.perf_counter() - begin)
        fastest[name] = min(times)
    return fastest


def main() -> None:
    found = errors(int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS)
    unit, times = found["weighted-sum"]["nobody"], seconds()
    print("| rule | " + " | ".join(f"cheats: {attack}" for attack in ATTACKS) + " | ms |")
    print("|---|" + "---|" * (len(ATTACKS) + 1))
    for name, row in found.items():
        cells = " | ".join(f"{row[attack] / unit:.2f}" for attack in ATTACKS)
        print(f"| {name} | {cells} | {1e3 * times[name]:.0f} |")


if __name__ == "__main__":
    main()
