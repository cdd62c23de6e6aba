"""Checks of a perturbation that need no statistics: domain, form, randomness, stated variance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import InputError
from flmarket_sim.perturbation.domains import Domain, norms
from flmarket_sim.perturbation.perturbation import message_bytes
from flmarket_sim.testing.perturbation_trial import Trial

Floats = NDArray[np.float64]
EXACT = 1e-9  # relative: rounding
DOMAINS: tuple[Domain, ...] = get_args(Domain)
LONGEST = (1e160, 1e300, 1.7e308)  # of which squares or sums are not finite
EXTREMES = (1e-3, 0.1, 1.0, 10.0, 100.0)  # privacy losses at which a release must be finite


def domain(trial: Trial) -> Iterator[str]:
    """Gradients are in the domain after `prepare`, those inside are as they were."""
    if trial.perturbation.domain not in DOMAINS:
        yield f"domain must be one of {', '.join(DOMAINS)}, not {trial.perturbation.domain!r}"
        return
    for dimension, clip in trial.places():
        yield from _prepared(trial, trial.raw(dimension), clip)
    yield from _one_coordinate(trial)


def _prepared(trial: Trial, raw: Floats, clip: float) -> Iterator[str]:
    perturbation, before = trial.perturbation, raw.copy()
    prepared: Any = perturbation.prepare(raw, clip)
    if not _is_array(prepared, raw.shape):
        yield f"prepare must give float64 {raw.shape}, got {_described(prepared)}"
        return
    if np.shares_memory(prepared, raw) or (raw != before).any():
        yield "prepare must leave its argument alone and give new memory"
    if not np.isfinite(prepared).all():
        yield f"prepare must give finite numbers, also of {_first(raw, ~np.isfinite(prepared))}"
        return
    length, old = norms(prepared, perturbation.domain), norms(before, perturbation.domain)
    if (length > clip * (1 + EXACT)).any():
        i = int(np.argmax(length))
        yield (
            f"a prepared gradient must have a norm ({perturbation.domain}) of at most clip = "
            f"{clip:g}, but one of norm {old[i]:g} keeps {length[i]:g}"
        )
    if perturbation.domain == "sphere":
        if (length < clip * (1 - 1e-6)).any():
            yield f"on the sphere every gradient has the length {clip:g}, got {length.min():g}"
        same = prepared * norms(before, "l2")[:, None] / clip
        inside = old > 0
    else:
        same, inside = prepared, old < 0.99 * clip
    if not np.allclose(same[inside], before[inside], 1e-6, 1e-6 * float(clip) * 1e-100):
        yield "prepare must not change a gradient that is in the domain (a sphere: its direction)"
    alone = np.concatenate([np.asarray(perturbation.prepare(row[None], clip)) for row in before])
    if not np.allclose(alone, prepared, EXACT, 0.0):
        yield "prepare must treat each gradient by itself, but a row depends on the others"


def _one_coordinate(trial: Trial) -> Iterator[str]:
    """A gradient of one coordinate works, or is refused for people."""
    perturbation, one = trial.perturbation, np.array([[0.5], [0.0], [-3.0]])
    try:
        prepared = np.asarray(perturbation.prepare(one))
        sent = np.asarray(perturbation.release(prepared, np.ones(3), trial.rng(0)))
        perturbation.variance(1.0, 1)
    except InputError:
        return
    if sent.shape != one.shape or not np.isfinite(sent).all():
        yield "gradients of one coordinate must be released, or refused by an InputError"


def overflow(trial: Trial) -> Iterator[str]:
    """What is not finite is prepared as zeros are, and the longest gradients as long ones are."""
    prepare, sort = trial.perturbation.prepare, trial.perturbation.domain
    for dimension, clip in trial.places():
        ones = np.ones((1, dimension))
        zeros = np.asarray(prepare(0.0 * ones, clip))
        for number in (np.nan, np.inf, -np.inf):
            for row in (number * ones, np.where(np.arange(dimension) == 0, number, ones)):
                prepared = np.asarray(prepare(row, clip))
                if prepared.tobytes() != zeros.tobytes():
                    yield (
                        "prepare must make of a gradient that is not finite what it makes of one "
                        f"of zeros, but not of {_first(row, np.isfinite(row))}"
                    )
                    return
        for size in LONGEST:
            prepared = np.asarray(prepare(size * ones, clip))
            length = norms(prepared, sort)[0]
            if not 0.99 * clip <= length <= clip * (1 + EXACT):
                yield f"a gradient of numbers of {size:g} must be brought to the edge of the domain"
                return


def form(trial: Trial) -> Iterator[str]:
    """Releases are finite float64 in the shape of the gradients, which stay as they are."""
    for dimension, clip in trial.places():
        prepared = np.asarray(trial.perturbation.prepare(trial.raw(dimension), clip))
        for loss in (*EXTREMES, *trial.losses):
            for rows in (prepared, prepared[:1]):
                before = rows.copy()
                losses = np.full(len(rows), loss)
                sent: Any = trial.perturbation.release(rows, losses, trial.rng(1), clip)
                if not _is_array(sent, rows.shape):
                    yield f"release must give float64 {rows.shape}, got {_described(sent)}"
                    return
                if np.shares_memory(sent, rows) or (rows != before).any():
                    yield "release must leave its argument alone and give new memory"
                if not np.isfinite(sent).all():
                    gradient = _first(before, ~np.isfinite(sent))
                    yield f"release must give finite numbers, also at e = {loss:g} of {gradient}"
                    return


def randomness(trial: Trial) -> Iterator[str]:
    """The generator is the only source of randomness."""
    dimension, clip = next(trial.places())
    rows = np.tile(trial.prepared(dimension, clip)["a long one"], (50, 1))
    losses = np.full(50, trial.losses[0])

    def release(seed: int) -> Floats:
        return np.asarray(trial.perturbation.release(rows, losses, trial.rng(seed), clip))

    # a release that draws from numpy's global generator changes with its seed
    saved = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    first = release(1)
    np.random.seed(1)  # noqa: NPY002
    again = release(1)
    np.random.set_state(saved)  # noqa: NPY002
    if first.tobytes() != again.tobytes():
        yield "the same generator must give the same release: is there another source of chance?"
    elif first.tobytes() == release(2).tobytes():
        yield "another generator must give another release"


def stated(trial: Trial) -> Iterator[str]:
    """The stated variance is a falling function of the loss, in units of clip squared."""
    variance = trial.perturbation.variance
    for dimension, clip in trial.places():
        grid: Floats = np.geomspace(0.05, 20.0, 24)
        for losses in (grid, grid.reshape(4, 6), np.float64(1.0), np.zeros(0)):
            got: Any = np.asarray(variance(losses, dimension, clip))
            if got.shape != np.shape(losses) or got.dtype != np.float64:
                yield (
                    f"variance must give float64 in the shape of the losses, {np.shape(losses)}, "
                    f"got {_described(got)}"
                )
                return
        found = np.asarray(variance(grid, dimension, clip))
        if not (np.isfinite(found) & (found > 0)).all():
            yield "variance must be finite and above 0 at losses above 0"
        if (np.diff(found) > EXACT * found[:-1]).any():
            i = int(np.argmax(np.diff(found)))
            yield (
                f"variance must fall with the privacy loss, but it is {found[i]:g} at {grid[i]:g} "
                f"and {found[i + 1]:g} at {grid[i + 1]:g}"
            )
        if np.asarray(variance(np.array([0.0, 1.0]), dimension, clip))[0] != np.inf:
            yield "variance must be infinite at a privacy loss of 0"
        if not np.allclose(variance(grid, dimension, 3.0 * clip), 9.0 * found, 1e-6):
            yield "variance must grow with the square of clip"


def bytes_sent(trial: Trial) -> Iterator[str]:
    """Messages have a whole number of bytes, at least one."""
    for dimension in trial.dimensions:
        for loss in trial.losses:
            size: Any = message_bytes(trial.perturbation, dimension, loss)
            if not isinstance(size, int | np.integer) or size < 1:
                yield f"message_bytes must be a whole number above 0, got {size!r}"
                return


def _is_array(values: Any, shape: tuple[int, ...]) -> bool:
    return isinstance(values, np.ndarray) and values.shape == shape and values.dtype == np.float64


def _described(values: Any) -> str:
    array = np.asarray(values)
    return f"{array.dtype} {array.shape}"


def _first(rows: Floats, wrong: NDArray[np.bool_]) -> str:
    """The first wrong gradient, in a few words."""
    row = rows[wrong.any(axis=1)][0] if wrong.any() else rows[0]
    shown = ", ".join(f"{number:.3g}" for number in row[:4])
    return f"the gradient ({shown}{', ...' if len(row) > 4 else ''})"
