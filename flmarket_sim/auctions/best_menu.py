"""The best menu for a single owner whose type is secret, by linear programming over types.

A buyer wants a small expected harm(e) + mu t, where t is the payment and harm falls with the
privacy loss e that she buys. Every type of the owner chooses from the same menu. By the revelation
principle the best menu is a table: for each type a lottery over the losses of a grid and a payment,
such that no type prefers the entry of another one, or nothing. That is a linear program. A lottery
can only help, so its value is a bound for all menus, price curves among them.

docs/second-best.md uses it to measure what it costs that families and privacy budgets are secret.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import FlmarketError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class BestMenu:
    """The optimum of the program.

    value    the least expected harm + mu t
    chance   (T, G) what each type gets: the chance of each loss of the grid
    payment  (T,) what each type is paid
    """

    value: float
    chance: Floats
    payment: Floats


def best_menu(
    probability: Floats,
    cost: Floats,
    harm: Floats,
    price: float,
    allowed: Bools | None = None,
    confusable: Bools | None = None,
) -> BestMenu:
    """The best menu for T types and G losses, of which the first is 0, "nothing".

    probability  (T,) of the types
    cost         (T, G) what the losses cost each type; 0 in the first column
    harm         (T, G) what the buyer still suffers if a type sells a loss
    price        mu, what a unit of money is worth to the buyer
    allowed      (T, G) the losses within the privacy budget of each type; by default all
    confusable   (T, T) whether type i can pretend to be type j; by default everybody everybody
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix

    types, losses = cost.shape
    can = np.ones((types, losses), bool) if allowed is None else allowed
    lies = np.ones((types, types), bool) if confusable is None else confusable
    deliverable = np.array(
        [[not (can[j] & ~can[i]).any() for j in range(types)] for i in range(types)]
    )
    # Type i can take the lottery of type j only if its privacy budget allows all of it. A lottery
    # may avoid what i cannot deliver, so this is decided by what j may sell at all.
    pairs = np.argwhere(lies & deliverable & ~np.eye(types, dtype=bool))
    chances, columns = types * losses, types * losses + types
    objective = np.concatenate([(probability[:, None] * harm).ravel(), price * probability])
    rows: list[NDArray[np.intp]] = []
    cols: list[NDArray[np.intp]] = []
    values: list[Floats] = []
    right: list[float] = []

    def constraint(entries: list[tuple[NDArray[np.intp], Floats]], limit: float) -> None:
        for place, value in entries:
            rows.append(np.full(len(place), len(right)))
            cols.append(place)
            values.append(value)
        right.append(limit)

    grid = np.arange(losses)
    one = np.ones(1)
    for i in range(types):  # selling is worth it: cost - payment <= 0
        constraint([(i * losses + grid, cost[i]), (np.array([chances + i]), -one)], 0.0)
    for i, j in pairs:  # own entry is the best: cost_ii - t_i <= cost_ij - t_j
        constraint(
            [
                (i * losses + grid, cost[i]),
                (np.array([chances + i]), -one),
                (j * losses + grid, -cost[i]),
                (np.array([chances + j]), one),
            ],
            0.0,
        )
    shape = (len(right), columns)
    matrix = coo_matrix(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(cols))), shape
    )
    whole = coo_matrix(
        (np.ones(chances), (np.repeat(np.arange(types), losses), np.arange(chances))),
        (types, columns),
    )
    upper = np.concatenate([np.where(can, 1.0, 0.0).ravel(), np.full(types, np.inf)])
    solved = linprog(
        objective,
        A_ub=matrix.tocsr(),
        b_ub=np.array(right),
        A_eq=whole.tocsr(),
        b_eq=np.ones(types),
        bounds=np.stack([np.zeros(columns), upper], axis=1),
        method="highs",
    )
    if solved.status != 0:
        raise FlmarketError(f"the linear program of a menu was not solved: {solved.message}")
    chance = solved.x[:chances].reshape(types, losses)
    return BestMenu(float(solved.fun), chance, solved.x[chances:])
