"""A published table of budget-feasible procurement, measured again with this project's auctions.

The table is Table 2 of Rubinstein and Zhao's code, Beyond Worst Case Analysis of Budget Feasible
Mechanisms (github.com/Junyaozhao/procurement_supp), 100 draws a cell; digits are rounded here and
cut off in its README. A market has 1,000 owners of unit value with random costs, cut off at zero,
and a budget of 20,000. A cell is the mean share of the fractional optimum that a mechanism buys.

`cutoff` is no auction but a reference: the best single posted ratio with full information.
Greedy-II is the mean that its rule buys. The published RandomSample pays the second half from what
the first one has left, which is `random-sample[purse=shared]`; the last column is the truthful
`random-sample`, whose halves have B / 2 each.

`python -m benchmarks.procurement [DRAWS]` measures each cell in so many markets. It fails if a cell
differs from the published one by more than 0.005.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.procurement.agn import fractional_sales
from flmarket_sim.auctions.procurement.posted_rule import PostedPoints, PostedRule
from flmarket_sim.auctions.procurement.random_sample import sample_sales
from flmarket_sim.auctions.procurement.stacked_draws import StackedDraws

Floats = NDArray[np.float64]
Shape = tuple[int, int]
OWNERS, BUDGET, DRAWS, AT_ONCE, SEED = 1000, 20_000.0, 600, 100, 0
CLOSE = 0.005
MECHANISMS = ("cutoff", "AGN", "Greedy-II", "RandomSample")
TRUTHFUL = "random-sample, B / 2 each"


def _mixture(means: tuple[float, ...], rng: np.random.Generator, shape: Shape) -> Floats:
    return rng.normal(rng.choice(means, shape), 3.0)


COSTS: dict[str, Callable[[np.random.Generator, Shape], Floats]] = {
    "normal(20, 5)": lambda rng, shape: rng.normal(20.0, 5.0, shape),
    "uniform(0, 40)": lambda rng, shape: rng.uniform(0.0, 40.0, shape),
    "exponential(20)": lambda rng, shape: rng.exponential(20.0, shape),
    "two normals": lambda rng, shape: _mixture((30.0, 10.0), rng, shape),
    "three normals": lambda rng, shape: _mixture((35.0, 20.0, 5.0), rng, shape),
}
PUBLISHED = {  # in the order of MECHANISMS
    "normal(20, 5)": (0.816, 0.633, 0.818, 0.811),
    "uniform(0, 40)": (0.709, 0.634, 0.711, 0.702),
    "exponential(20)": (0.741, 0.663, 0.743, 0.737),
    "two normals": (0.690, 0.634, 0.726, 0.718),
    "three normals": (0.681, 0.634, 0.712, 0.706),
}


class Cell(NamedTuple):
    """The mean share over markets, and its standard error."""

    mean: float
    error: float


def fractional_optimum(cost: Floats, budget: Floats) -> Floats:
    """(K,) how many owners of unit value the budget buys at their costs (K, n), the last in part.

    The money spent is a broken line over the number of owners bought, so this is its inverse.
    """
    spent = np.pad(np.cumsum(np.sort(cost, axis=1), axis=1), ((0, 0), (1, 0)))
    count = np.arange(spent.shape[1], dtype=np.float64)
    return np.array(
        [np.interp(money, line, count) for money, line in zip(budget, spent, strict=True)]
    )


def shares(cost: Floats, budget: Floats, rng: np.random.Generator) -> dict[str, Floats]:
    """(K,) shares of the fractional optimum in markets of unit value, by mechanism."""
    unit = np.ones_like(cost)
    points = PostedPoints.of(cost, unit)

    def drawn() -> StackedDraws:
        return StackedDraws.of([rng], cost.shape)

    bought = {
        "cutoff": points.sold[np.arange(len(cost)), points.cutoff(budget)],
        "AGN": fractional_sales(cost, unit, budget)[0].sum(axis=1),
        "Greedy-II": PostedRule.best(cost, unit, budget).sold,
        "RandomSample": sample_sales(cost, unit, budget, drawn(), "shared")[0].sum(axis=1),
        TRUTHFUL: sample_sales(cost, unit, budget, drawn(), "halves")[0].sum(axis=1),
    }
    best = fractional_optimum(cost, budget)
    return {name: value / best for name, value in bought.items()}


def measured(costs: str, draws: int, seed: int = SEED) -> dict[str, Cell]:
    """The cells of one line, over so many markets."""
    rng = np.random.default_rng([seed, list(COSTS).index(costs)])
    parts = []
    for first in range(0, draws, AT_ONCE):
        count = min(AT_ONCE, draws - first)
        cost = np.maximum(COSTS[costs](rng, (count, OWNERS)), 0.0)
        parts.append(shares(cost, np.full(count, BUDGET), rng))
        print(f"\r{costs}: {first + count} of {draws} markets ", end="", file=sys.stderr)
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {
        name: Cell(float(share.mean()), float(share.std(ddof=1) / np.sqrt(draws)))
        for name, share in columns.items()
    }


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS
    heads = ["costs", *(f"{name}: measured, published, difference" for name in MECHANISMS)]
    print(f"## A published table of procurement, {draws} markets a line\n")
    print("| " + " | ".join([*heads, TRUTHFUL]) + " |\n" + "|---" * (len(heads) + 1) + "|")
    largest_error, largest_gap = 0.0, 0.0
    for costs, published in PUBLISHED.items():
        cells = measured(costs, draws)
        texts = []
        for name, there in zip(MECHANISMS, published, strict=True):
            gap = cells[name].mean - there
            largest_gap = max(largest_gap, abs(gap))
            texts.append(f"{cells[name].mean:.4f}, {there:.3f}, {gap:+.4f}")
        largest_error = max(largest_error, *(cell.error for cell in cells.values()))
        print(f"| {costs} | " + " | ".join([*texts, f"{cells[TRUTHFUL].mean:.4f}"]) + " |")
    print(f"\nThe largest difference is {largest_gap:.4f}; ", end="")
    print(f"the largest standard error of a mean is {largest_error:.4f}.")
    if largest_gap > CLOSE:
        sys.exit(f"a cell differs from the published one by more than {CLOSE:g}")


if __name__ == "__main__":
    main()
