"""The price of violations in a training: multipliers, and how they rise.

Appendix A has one multiplier for each owner and violation, in an augmented Lagrangian. A steered
training has one for each violation, which holds the violation at a target.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

ITERATIONS = 10  # Q, the number of iterations between two updates
Violations = dict[str, Tensor]  # "regret", "ir" and "determinism", each (n,)


def at_start(owners: int) -> Violations:
    """phi = 1 for each owner and violation."""
    return {name: torch.ones(owners) for name in ("regret", "ir", "determinism")}


def quadratic_weight(name: str, epoch: int) -> float:
    """rho in an epoch (the first is 0): it grows by 1 after each, but stays 1 for determinism."""
    return 1.0 if name == "determinism" else 1.0 + epoch


def augmented(multipliers: Violations, violations: Violations, epoch: int) -> Tensor:
    """sum_i phi_i v_i + rho / 2 (sum_i v_i)^2, over all violations v."""
    total = torch.zeros(())
    for name, v in violations.items():
        quadratic = 0.5 * quadratic_weight(name, epoch) * v.sum() ** 2
        total = total + (multipliers[name] * v).sum() + quadratic
    return total


def raise_augmented(
    multipliers: Violations, violations: Violations, iteration: int, epoch: int
) -> None:
    """phi_i + rho v_i after every Q-th iteration (the first is 1), by that iteration's v."""
    if iteration % ITERATIONS == 0:
        for name, v in violations.items():
            multipliers[name] = multipliers[name] + quadratic_weight(name, epoch) * v


def steered(multipliers: Violations, violations: Violations) -> Tensor:
    """The mean violations times their multipliers."""
    terms = (multipliers[name][0] * v.mean() for name, v in violations.items())
    return sum(terms, torch.zeros(()))


def steer(
    multipliers: Violations,
    running: dict[str, float],
    violations: Violations,
    iteration: int,
    targets: dict[str, float],
) -> None:
    """Follows the running means of the violations, and pushes multipliers every 20 iterations."""
    for name in running:
        running[name] = 0.98 * running[name] + 0.02 * float(violations[name].mean())
        if iteration % 20 == 0:
            push = 0.05 * math.log(max(running[name], 1e-4) / targets[name])
            multipliers[name] = (multipliers[name] * math.exp(push)).clamp(0.05, 100.0)
