"""What constraints on weights cost in error, and what solving for them costs in time.

`python -m benchmarks.constrained_aggregation` prints the two tables of docs/writing-a-rule.md.
"""

from __future__ import annotations

import numpy as np

from benchmarks.timing import best_of
from flmarket_sim.aggregation import create, error_bound, sparse_support
from flmarket_sim.aggregation.convex_rule import ConvexRule

KAPPAS = (8.0, 5000.0)
CONSTRAINTS = (
    {"cap": 0.3},
    {"cap": 0.15},
    {"fairness": 1.0},
    {"fairness": 0.1},
    {"bias": 0.5},
    {"bias": 0.2},
    {"sparsity": 6},
    {"sparsity": 3},
    {"cap": 0.3, "fairness": 0.5, "sparsity": 6},
)


class LeastError(ConvexRule):
    """The problem of `opt-aggr`, by a solver."""

    name = "least-error"

    def problem(self, owners):
        return owners.error_bound, []


def markets(count: int, n: int = 10, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Privacy losses and data sizes: one owner in five sells nothing, and sizes differ widely."""
    rng = np.random.default_rng(seed)
    loss = rng.uniform(0.5, 2.0, (count, n)) * (rng.random((count, n)) < 0.8)
    loss[:, 0] = np.maximum(loss[:, 0], 0.5)
    return loss, np.floor(rng.lognormal(3, 1.5, (count, n))) + 1


def noise(loss: np.ndarray, kappa: float) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.asarray(kappa / loss**2)


def errors(count: int = 200) -> str:
    """Mean error bound over that of `opt-aggr`, and the markets in which the weights differ."""
    loss, size = markets(count)
    lines = [
        "| constraint | error, kappa 8 | weights differ in | error, kappa 5000 "
        "| weights differ in |",
        "|---|---|---|---|---|",
    ]
    for options in CONSTRAINTS:
        cells = [", ".join(f"{key} {value}" for key, value in options.items())]
        for kappa in KAPPAS:
            variance = noise(loss, kappa)
            free = create("opt-aggr").weights(loss, size, 1.0, variance)
            bound = create("constrained", **options).weights(loss, size, 1.0, variance)
            ratio = [error_bound(w, loss, size, 1.0, variance) for w in (bound, free)]
            differ = np.abs(bound - free).max(axis=1) > 1e-9
            cells += [f"{np.mean(ratio[0] / ratio[1]):.3f}", f"{differ.mean():.0%}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def elimination_gap(count: int = 200, keep: int = 4) -> str:
    """Backward elimination with exchanges against all supports, in markets of 12 owners."""
    loss, size = markets(count, 12, seed=1)
    sentences = []
    for kappa in KAPPAS:
        variance, bounds = noise(loss, kappa), []
        for enumerated in (5_000, 0):
            sparse_support.ENUMERATED = enumerated
            weights = create("constrained", sparsity=keep).weights(loss, size, 1.0, variance)
            bounds.append(error_bound(weights, loss, size, 1.0, variance))
        gap = bounds[1] / bounds[0] - 1
        sentences.append(
            f"kappa {kappa:g}: best support in {np.mean(gap < 1e-9):.1%} of the markets, largest "
            f"gap {gap.max():.1e}"
        )
    sparse_support.ENUMERATED = 5_000
    return "; ".join(sentences)


def times(solves: int = 40) -> str:
    """Milliseconds a market: one at a time as in a run, and 512 at once as in a study."""
    many = 512
    loss, size = markets(many, seed=2)
    rules = {
        "`opt-aggr`": create("opt-aggr"),
        "a `ConvexRule` of the same problem": LeastError(),
        "`constrained`, a cap of 0.9 that rarely binds": create("constrained", cap=0.9),
        "`constrained`, a cap of 0.15": create("constrained", cap=0.15),
        "`constrained`, a sparsity of 4": create("constrained", sparsity=4),
        "`opt-aggr-scs`": create("opt-aggr-scs"),
    }
    lines = ["| rule | first market | one market | a market of 512 |", "|---|---|---|---|"]
    for name, rule in rules.items():
        (first,) = best_of(1, lambda rule=rule: rule.weights(loss[:1], size[:1]))
        alone, together = best_of(
            2,
            lambda rule=rule: [rule.weights(loss[[k]], size[[k]]) for k in range(solves)],
            lambda rule=rule: rule.weights(loss, size),
        )
        cells = (first, alone / solves, together / many)
        lines.append(f"| {name} | {' | '.join(f'{1e3 * cell:.3g} ms' for cell in cells)} |")
    return "\n".join(lines)


def main() -> None:
    create("constrained", cap=0.15).weights(*markets(3))  # imports cvxpy
    print("## What constraints cost\n\n### Error\n")
    print(errors())
    print(f"\nSparsity by elimination, 4 of 12 owners: {elimination_gap()}.")
    print("\n### Time\n")
    print(times())


if __name__ == "__main__":
    main()
