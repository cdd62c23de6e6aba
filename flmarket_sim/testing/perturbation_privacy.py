"""Checks of what a perturbation promises: a search for an event that tells more than e."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.perturbation.perturbation import Approximate, delta_of
from flmarket_sim.privacy.audit_event import candidates, choose_event, worst_pairs
from flmarket_sim.privacy.loss_bounds import lower_bound
from flmarket_sim.testing.perturbation_trial import Trial

Floats = NDArray[np.float64]
CONFIDENCE = 1 - 1e-6  # of a refusal
PILOT = 3  # for every draw that is counted, a third of one goes to the search


def promise(trial: Trial) -> Iterator[str]:
    """A perturbation with a delta states a small chance."""
    if isinstance(trial.perturbation, Approximate):
        delta = trial.perturbation.delta
        if not (isinstance(delta, float) and 0 < delta < 1):
            yield f"delta must be a chance above 0 and below 1, got {delta!r}"


def privacy(trial: Trial) -> Iterator[str]:
    """No event tells two gradients apart by more than the promise.

    Events are looked for among those that the perturbation names and among others, since the author
    of a leak does not know of it.
    """
    perturbation, delta = trial.perturbation, delta_of(trial.perturbation)
    for place, (dimension, clip) in enumerate(trial.places()):
        for number, loss in enumerate(trial.losses):
            named = worst_pairs(perturbation, loss, dimension, clip)
            searched = list(candidates(perturbation, dimension, clip))
            for turn, pairs in enumerate((named, searched)):
                key = (6, place, number, turn)

                def draw(
                    gradient: Floats,
                    count: int,
                    stream: int,
                    key: tuple[int, ...] = key,
                    loss: float = loss,
                    clip: float = clip,
                ) -> Floats:
                    prepared = np.asarray(perturbation.prepare(gradient[None], clip))[0]
                    return trial.released(prepared, loss, clip, count, *key, stream)

                pilot = trial.draws // PILOT * len(pairs)
                event = choose_event(pairs, delta, trial.draws, pilot, draw)
                likely = event.hits(draw(np.array(event.first), trial.draws, 10**6))[0]
                unlikely = event.hits(draw(np.array(event.second), trial.draws, 10**6 + 1))[0]
                shown = lower_bound(likely, unlikely, trial.draws, CONFIDENCE, delta)
                if shown > loss * (1 + 1e-9):
                    yield _told(event.first, event.second, loss, shown, delta)
                    return


def _told(
    first: tuple[float, ...], second: tuple[float, ...], loss: float, shown: float, delta: float
) -> str:
    texts = [
        "(" + ", ".join(f"{x:.3g}" for x in one[:3]) + (", ...)" if len(one) > 3 else ")")
        for one in (first, second)
    ]
    promised = f"(e, delta) = ({loss:g}, {delta:g})" if delta else f"e = {loss:g}"
    factor = math.exp(min(shown, 500.0))
    return (
        f"it promises {promised}, but releases of the gradients {texts[0]} and {texts[1]} of "
        f"{len(first)} coordinates are told apart by an event that is {factor:.3g} times as likely "
        f"for one: e is at least {shown:.3g}"
    )
