"""The settings of a training of the paper's networks: appendix A, and departures by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flmarket_sim.errors import InputError

# Levels of each mechanism, and whether it is deterministic.
MECHANISMS = {"regretnet": (1, False), "m-regretnet": (8, False), "dm-regretnet": (8, True)}


@dataclass(frozen=True)
class RegretNetSettings:
    """The settings of a training of the paper's networks.

    steps            The number of steps: T batches an epoch times the epochs.
    markets          K, the number of profiles in a batch.
    learning_rate    psi, the step size of the optimiser.
    attack           "ascent" climbs the slope of utility from the truth, for every owner in turn.
                     "search" keeps the best of random misreports of one owner of each market,
                     which also finds gains that no slope leads to.
    tries            J, the number of steps of an ascent, or of the misreports of a search.
    temperature      tau at the first and at the last step; a falling one ends near the deployed
                     choice.
    regret_target, ir_target
                     With targets, one multiplier for each violation is steered so that the
                     violation stays there (multiplier *= exp(gain log(violation / target))).
                     Without, the multipliers follow appendix A, one for each owner.
    steps_per_epoch  T, the number of batches in an epoch.
    wild             The share of extreme misreports in a search.

    Every field below is a departure from appendix A if it is on.

    cost_floor       Violations are divided by at least the value of one level, so that an owner
                     who sells next to nothing does not dominate the mean.
    detach_cost      The cost that divides has no slope, so that violations are lowered by better
                     payments and not by selling more.
    gain_cap         Violations of one owner in one market count up to this many times her cost, so
                     that a few markets do not drown the others.
    gradient_clip    Gradients are scaled down to this norm, so that no batch moves the weights far.
    fresh_profiles   Every step sees new profiles, so that a network cannot learn the sample. The
                     paper has one sample of T batches, the same in each epoch.
    size_lies        Misreports may also state fewer records. They are part of the paper's bid, so
                     this departure is on if the field is off: sizes are then certified.
    record_ascent    An ascent climbs utility for a record in place of utility in money, so that its
                     steps do not grow with an owner's data size.
    falling_rate     The learning rate falls along a cosine to 1 %, so that the last steps settle.
    optimiser        "adam" divides the slope by its recent size, so that steps do not depend on
                     its scale; the authors' code does so too. "descent" is the plain step
                     theta - psi slope that appendix A writes.
    """

    preset: str
    steps: int
    markets: int
    learning_rate: float
    attack: Literal["search", "ascent"]
    tries: int
    temperature: tuple[float, float]
    regret_target: float | None = None
    ir_target: float | None = None
    steps_per_epoch: int = 50
    wild: float = 0.0
    cost_floor: bool = False
    detach_cost: bool = False
    gain_cap: float | None = None
    gradient_clip: float | None = None
    fresh_profiles: bool = False
    size_lies: bool = True
    record_ascent: bool = False
    falling_rate: bool = False
    optimiser: Literal["descent", "adam"] = "descent"


def paper_settings(mechanism: str) -> RegretNetSettings:
    """Appendix A of the paper."""
    trainable(mechanism)
    return RegretNetSettings(
        "paper", 5000, 1024, 1e-3, "ascent", 100, (0.125, 0.125), steps_per_epoch=100
    )


def trainable(mechanism: str) -> tuple[int, bool]:
    """The levels of a mechanism, and whether it is deterministic."""
    if mechanism not in MECHANISMS:
        names = ", ".join(MECHANISMS)
        raise InputError(f"{mechanism!r} cannot be trained; choose one of {names} or seq-price")
    return MECHANISMS[mechanism]
