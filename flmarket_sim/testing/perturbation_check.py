"""Checks for authors of perturbations: does one keep the contract of
perturbation/perturbation.py?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flmarket_sim.plugins import registry
from flmarket_sim.plugins.plugin_kind import require_contract
from flmarket_sim.testing.complaints import complaints
from flmarket_sim.testing.perturbation_form import (
    bytes_sent,
    domain,
    form,
    overflow,
    randomness,
    stated,
)
from flmarket_sim.testing.perturbation_moments import losses_of_rows, moments, rows_apart
from flmarket_sim.testing.perturbation_privacy import privacy, promise
from flmarket_sim.testing.perturbation_trial import Trial

Check = Callable[[Trial], Iterator[str]]
CHECKS: dict[str, Check] = {
    "domain": domain,
    "overflow": overflow,
    "form": form,
    "randomness": randomness,
    "variance": stated,
    "bytes": bytes_sent,
    "promise": promise,
    "moments": moments,
    "own loss": losses_of_rows,
    "rows apart": rows_apart,
    "privacy": privacy,
}


class NotAPerturbation(AssertionError):
    """A perturbation breaks its contract; the message has everything that is wrong."""


def check_perturbation(
    perturbation: Any,
    dimensions: Sequence[int] = (2, 10),
    losses: Sequence[float] = (0.5, 1.0, 2.0),
    clips: Sequence[float] = (1.0, 2.5),
    draws: int = 20_000,
    seed: int = 0,
    only: Sequence[str] = tuple(CHECKS),
) -> None:
    """Tries a perturbation in some dimensions, at some privacy losses.

    The perturbation is an instance, a class, a name or "module:Class". Raises NotAPerturbation with
    all complaints. The checks, of which `only` names some:

    domain       `prepare` brings every gradient into the domain, and leaves alone what is there
    overflow     `prepare` makes of a gradient that is not finite what it makes of one of zeros
    form         `release` gives finite float64 in the shape of its argument, which it leaves alone
    randomness   all randomness is that of the given generator
    variance     the stated variance has the shape of the losses, falls, is infinite at 0, and grows
                 with the square of the threshold
    bytes        messages have a size
    promise      a delta is a chance
    moments      the mean of releases is the gradient; their variance is the stated one
    own loss     every row is released at its own privacy loss
    rows apart   a release depends neither on other rows nor on their noise
    privacy      no event found by a search tells two gradients apart by more than is promised

    The last four are statistical, with `draws` releases of each gradient. Their thresholds are such
    that chance refuses a sound perturbation less than once in 10,000 seeds. What is not refused is
    not proven.
    """
    made: Any = (
        registry.perturbations.create(perturbation)
        if isinstance(perturbation, str)
        else perturbation
    )
    made = made() if isinstance(made, type) else made
    kind = registry.perturbations
    require_contract(type(made), type(made).__name__, kind.kind, ("name", *kind.needs[2:]))
    trial = Trial(made, tuple(dimensions), tuple(losses), tuple(clips), draws, seed)
    listed = complaints(CHECKS, only, trial)
    if listed:
        raise NotAPerturbation(f"the perturbation {made.name!r} breaks its contract:\n{listed}")
