"""Checks of the mean and the variance of releases, by many draws."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.perturbation.perturbation import BoundsVariance
from flmarket_sim.testing.perturbation_trial import Trial

Floats = NDArray[np.float64]
FAR_OFF = 5.5  # standard errors that chance does not explain
ROUNDING = 1e-6
NEAR = 0.02  # relative: a stated variance is reached by some gradient so closely


def moments(trial: Trial) -> Iterator[str]:
    """Means are the gradients; no variance is above the stated one, and one reaches it."""
    for place, (dimension, clip) in enumerate(trial.places()):
        for number, loss in enumerate(trial.losses):
            said = float(trial.perturbation.variance(loss, dimension, clip))
            where = f"at e = {loss:g}, {dimension} coordinates, clip = {clip:g}"
            shares: list[tuple[float, float]] = []
            for which, (name, gradient) in enumerate(trial.prepared(dimension, clip).items()):
                key = (2, place, number, which)
                sent = trial.released(gradient, loss, clip, trial.draws, *key)
                score = mean_score(sent, gradient)
                if score > FAR_OFF:
                    yield (
                        f"the mean of releases must be the gradient, but {where} that of {name} is "
                        f"off by {score:.1f} standard errors"
                    )
                shares.append(variance_share(sent, gradient, said))
                share, error = shares[-1]
                if not share <= 1 + ROUNDING + FAR_OFF * error:
                    yield (
                        f"variance must be the largest of all gradients, but {where} that of "
                        f"{name} is {share:.3g} times the stated {said:g}"
                    )
            share, error = max(shares)
            bounded = isinstance(trial.perturbation, BoundsVariance)
            if share < 1 - NEAR - FAR_OFF * error and not bounded:
                yield (
                    f"variance must be reached by some gradient, but {where} the largest found is "
                    f"{share:.3g} times the stated {said:g} (if it is a bound, say so by "
                    "variance_is_bound = True)"
                )


def mean_score(sent: Floats, gradient: Floats) -> float:
    """Standard errors between the mean of releases (n, D) and the gradient (D,): the largest of any
    coordinate, of the sum of coordinates and of the height along the gradient."""
    apart = sent - gradient
    sums = [apart, apart.sum(axis=1)[:, None], (apart @ gradient)[:, None]]
    columns = np.concatenate(sums, axis=1)
    mean, error = columns.mean(axis=0), columns.std(axis=0) / np.sqrt(len(columns))
    scale = np.maximum(np.abs(gradient).max(initial=0.0), 1e-300)
    floor = 1e-9 * scale  # releases without any noise are exact up to rounding
    return float((np.abs(mean) / np.maximum(error, floor)).max())


def variance_share(sent: Floats, gradient: Floats, stated: float) -> tuple[float, float]:
    """The variance of releases over the stated one, and the standard error of that."""
    squares = np.square(sent - gradient).sum(axis=1) / stated
    return float(squares.mean()), float(squares.std() / np.sqrt(len(squares)))


def losses_of_rows(trial: Trial) -> Iterator[str]:
    """Rows with different losses in one release have the variance of their own loss."""
    dimension, clip = list(trial.places())[-1]
    gradient = trial.prepared(dimension, clip)["a long one"]
    low, high = min(trial.losses), max(trial.losses)
    mixed = np.where(np.arange(2 * trial.draws) % 2 == 0, low, high)
    rows = np.tile(gradient, (len(mixed), 1))
    sent = np.asarray(trial.perturbation.release(rows, mixed, trial.rng(3), clip))
    for loss in (low, high):
        alone = trial.released(gradient, loss, clip, trial.draws, 4)
        share, error = variance_share(sent[mixed == loss], gradient, 1.0)
        other, its_error = variance_share(alone, gradient, 1.0)
        if abs(share - other) > FAR_OFF * np.hypot(error, its_error):
            yield (
                f"every row has its own privacy loss, but rows at e = {loss:g} among others have "
                f"{share / other:.3g} times the variance that they have alone"
            )


def rows_apart(trial: Trial) -> Iterator[str]:
    """A release is independent of the other gradients, and of their noise."""
    dimension, clip = list(trial.places())[-1]
    loss = trial.losses[-1]
    gradients = trial.prepared(dimension, clip)
    own, other = gradients["a long one"], gradients["a long one along an axis"]
    means, errors = [], []
    for key, neighbour in enumerate((other, -other)):
        rows = np.tile(np.stack([own, neighbour]), (trial.draws, 1))
        losses = np.full(len(rows), loss)
        sent = np.asarray(trial.perturbation.release(rows, losses, trial.rng(5, key), clip))
        means.append(sent[::2].mean(axis=0))
        errors.append(sent[::2].std(axis=0) / np.sqrt(trial.draws))
        noise = sent - rows
        products = np.einsum("ij,ij->i", noise[::2], noise[1::2])
        if abs(products.mean()) > FAR_OFF * products.std() / np.sqrt(trial.draws):
            yield "the noise of one row must be independent of that of another"
    apart = np.abs(means[0] - means[1]) / np.maximum(np.hypot(*errors), 1e-300)
    if apart.max() > FAR_OFF:
        yield "a release must not depend on the gradients of other rows"
