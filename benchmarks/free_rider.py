"""What payments for contribution pay a free rider, who sends noise of the right size and no
gradient.

Eight owners sell equally many records at one privacy loss, so an auction has no reason to pay one
more than another. Seven of them are honest. The eighth releases a vector of zeros: her message has
exactly the distribution that her perturbation gives an owner without a gradient. A cell is her part
of the money in units of an equal part (1: she is paid like everybody else, 0: nothing), in the mean
over draws of owners and noise, with its standard error. The model is that of the quickstart, and
each draw is the first round of a market.

`python -m benchmarks.free_rider [DRAWS]` takes about two minutes. It fails if the error bound tells
the free rider from the others, since it cannot see messages.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import flmarket_sim as fm
from flmarket_sim import aggregation
from flmarket_sim.aggregation.weighted_sum import WeightedSum
from flmarket_sim.contribution.contribution_rule import Game
from flmarket_sim.contribution.games import ErrorGame, LossGame
from flmarket_sim.contribution.money_shares import shares_of_sellers
from flmarket_sim.learning.buyer_model import buyer_model
from flmarket_sim.learning.dataset import read_data
from flmarket_sim.perturbation.perturbation import vector_error
from flmarket_sim.plugins import registry

Floats = NDArray[np.float64]
OWNERS, RECORDS, DRAWS, RATE = 8, 40, 100, 0.5
LOSSES = (1.0, 4.0, 16.0, 64.0)
RULES = ("shapley", "leave-one-out")
VALUES = ("error-bound", "validation-loss")
ROUNDING = 1e-9


class Cell(NamedTuple):
    """The free rider's part of the money over an equal part: mean and standard error; and the share
    of draws in which nobody is paid."""

    mean: float
    error: float
    unpaid: float


def games(loss: float, rng: np.random.Generator) -> dict[str, Game]:
    """Both games of one round; the last seller is the free rider."""
    scenario = fm.load_scenario("quickstart")
    data = read_data(scenario)
    model = buyer_model(scenario, data)
    rows = rng.choice(len(data.train_y), OWNERS * RECORDS, replace=False)
    start = model.initial()
    raw = model.gradients(start, data, rows, np.full(OWNERS, RECORDS))
    raw[-1] = 0.0
    perturbation = registry.perturbations.create("priv-unit")
    losses = np.full(OWNERS, loss)
    messages = perturbation.release(perturbation.prepare(raw), losses, rng)
    error = vector_error(perturbation, model.dimension)
    rule = aggregation.create("opt-aggr")
    purchase = ErrorGame(rule, error, losses, np.full(OWNERS, float(RECORDS)), np.arange(OWNERS))

    def loss_of(gradient: Floats | None, bound: float) -> float:
        return model.evaluate(start if gradient is None else start - RATE * gradient, data).loss

    by_loss = LossGame(purchase, error, WeightedSum(), messages, loss_of)
    return {"error-bound": purchase, "validation-loss": by_loss}


def measured(draws: int) -> dict[tuple[str, str, float], Cell]:
    parts: dict[tuple[str, str, float], list[float]] = {}
    unpaid: dict[tuple[str, str, float], int] = {}
    for loss in LOSSES:
        for draw in range(draws):
            rng = np.random.default_rng([draw, int(loss)])
            for value, game in games(loss, rng).items():
                for name in RULES:
                    made = registry.contributions.create(name).values(game, rng).value
                    share = shares_of_sellers(made, ROUNDING * abs(made).max())
                    cell = (value, name, loss)
                    parts.setdefault(cell, []).append(float(share[-1] * OWNERS))
                    unpaid[cell] = unpaid.get(cell, 0) + (share.sum() == 0.0)
    return {
        cell: Cell(
            float(np.mean(found)), float(np.std(found, ddof=1) / draws**0.5), unpaid[cell] / draws
        )
        for cell, found in parts.items()
    }


def table(cells: dict[tuple[str, str, float], Cell]) -> str:
    lines = [
        "| value | rule | " + " | ".join(f"e = {loss:g}" for loss in LOSSES) + " |",
        "|---|---|" + "---|" * len(LOSSES),
    ]
    for value in VALUES:
        for name in RULES:
            row = [cells[value, name, loss] for loss in LOSSES]
            shown = " | ".join(f"{c.mean:.2f} ± {c.error:.2f} ({c.unpaid:.0%})" for c in row)
            lines.append(f"| {value} | {name} | {shown} |")
    return "\n".join(lines)


def main() -> int:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS
    cells = measured(draws)
    print(table(cells))
    fooled = [c for (value, *_), c in cells.items() if value == "error-bound"]
    return int(any(abs(c.mean - 1.0) > 1e-6 for c in fooled))


if __name__ == "__main__":
    sys.exit(main())
