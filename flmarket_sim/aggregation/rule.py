"""The contract of aggregation rules: `weights(privacy_loss, data_size, ...) -> (K, n)`."""

from __future__ import annotations

import inspect
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.aggregation.market_error import COORDINATE_KAPPA, MarketError
from flmarket_sim.errors import ContractError, InputError

Floats = NDArray[np.float64]
LARGEST = 1e100  # squares of it, and sums of them, are still numbers


class AggregationRule(Protocol):
    """Weights that sum to 1 over the owners with a positive privacy loss, and are 0 elsewhere.

    `variance` (K, n) is the variance of what each owner releases, infinite where she sells nothing;
    None means the paper's, 8 L^2 / e^2 with L = `clip`. `clip` is the largest norm of a gradient. A
    rule that does not use variances need not have the parameter. Markets where nobody sells get the
    data shares (paper, Algorithm 2), and an infinite error bound.
    """

    name: str

    def weights(
        self,
        privacy_loss: ArrayLike,
        data_size: ArrayLike,
        clip: float = 1.0,
        variance: ArrayLike | None = None,
    ) -> Floats: ...


def weights_in(
    rule: AggregationRule, privacy_loss: Floats, data_size: Floats, error: MarketError
) -> Floats:
    """(K, n) the weights of a rule in a market that counts this error."""
    if error.kind == "coordinate" or not takes_variance(rule):
        return rule.weights(privacy_loss, data_size, error.radius)
    variance = error.variance(privacy_loss)
    return rule.weights(privacy_loss, data_size, error.radius, variance=variance)


def takes_variance(rule: AggregationRule) -> bool:
    parameters = inspect.signature(rule.weights).parameters.values()
    return any(p.name == "variance" or p.kind is p.VAR_KEYWORD for p in parameters)


def check_variance(variance: ArrayLike | None, privacy_loss: Floats, clip: float) -> Floats:
    """(K, n) the variance of what each owner releases, infinite where she sells nothing."""
    if variance is None:
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(COORDINATE_KAPPA * (clip / privacy_loss) ** 2)
    array = numbers("variance", variance)
    if array.shape != privacy_loss.shape:
        raise InputError(
            f"variance must have the shape of privacy_loss {privacy_loss.shape}, got {array.shape}"
        )
    right = (array > 0) & ((array <= LARGEST**2) | (privacy_loss == 0))
    refuse("variance", array, right, f"be positive, and at most {LARGEST**2:g} where she sells")
    return np.where(privacy_loss > 0, array, np.inf)


def noise_and_radius(
    variance: ArrayLike | None, privacy_loss: Floats, clip: float
) -> tuple[Floats, Floats]:
    """Variances (K, n) and the largest norm of a gradient (K,), in units that a solver can take.

    Only V / C^2 matters to weights. So where a seller's variance is not between 1e-200 and 1e200,
    her market is measured in another unit, in which the least variance is near 1. A variance that
    is still above 1e200 there is cut: without constraints such an owner has no weight.
    """
    noise = check_variance(variance, privacy_loss, clip)
    radius = np.full(len(noise), float(clip))
    sells = privacy_loss > 0
    within = (noise >= LARGEST**-2) & (noise <= LARGEST**2) | ~sells
    far = np.flatnonzero(~within.all(axis=1))
    if len(far):
        with np.errstate(divide="ignore", over="ignore"):
            if variance is None:
                radius[far] = privacy_loss[far].max(axis=1)
                relative = COORDINATE_KAPPA * (radius[far, None] / privacy_loss[far]) ** 2
            else:
                least = noise[far].min(axis=1, keepdims=True)
                radius[far] = np.minimum(clip / np.sqrt(least[:, 0]), LARGEST)
                relative = noise[far] / least
        noise[far] = np.where(sells[far], np.minimum(relative, LARGEST**2), np.inf)
    return noise, radius


def check_inputs(
    privacy_loss: ArrayLike, data_size: ArrayLike, clip: float
) -> tuple[Floats, Floats]:
    """Both as float64 (K, n); wrong shapes, signs and numbers are refused by name."""
    loss, size = numbers("privacy_loss", privacy_loss), numbers("data_size", data_size)
    if loss.ndim != 2 or loss.shape != size.shape or loss.shape[1] == 0:
        raise InputError(
            f"privacy_loss and data_size must share a shape (K, n), "
            f"got {loss.shape} and {size.shape}"
        )
    refuse(
        "privacy_loss",
        loss,
        (loss >= 0) & (loss <= LARGEST),
        f"be at least 0 and at most {LARGEST:g}",
    )
    refuse(
        "data_size", size, (size > 0) & (size <= LARGEST), f"be positive and at most {LARGEST:g}"
    )
    if not (isinstance(clip, int | float | np.number) and 1 / LARGEST <= clip <= LARGEST):
        raise InputError(f"clip must be a number from {1 / LARGEST:g} to {LARGEST:g}, got {clip!r}")
    return loss, size


def numbers(name: str, values: ArrayLike) -> Floats:
    try:
        return np.asarray(values, np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{name} must be an array of numbers: {error}") from None


def refuse(name: str, array: Floats, right: NDArray[np.bool_], must: str) -> None:
    """Names the first entry that is not right (nan never is)."""
    if not right.all():
        k, i = np.argwhere(~right)[0]
        raise InputError(
            f"{name}[{k}, {i}] (market {k}, owner {i}) is {array[k, i]}; it must {must}"
        )


def check_weights(name: str, weights: Any, privacy_loss: Floats) -> Floats:
    """Refuses weights that break the contract: shapes, signs, sums other than 1, and weights on
    owners who sell nothing."""
    array = np.asarray(weights)
    if array.shape != privacy_loss.shape or array.dtype != np.float64:
        raise ContractError(
            f"aggregation rule {name!r}: weights must be float64 of shape {privacy_loss.shape}, "
            f"got {array.dtype} {array.shape}"
        )
    if not (np.isfinite(array) & (array >= 0)).all():
        raise ContractError(
            f"aggregation rule {name!r}: weights must be finite and at least 0, "
            f"got {array.tolist()}"
        )
    if (np.abs(array.sum(axis=1) - 1.0) > 1e-6).any():
        raise ContractError(
            f"aggregation rule {name!r}: weights must sum to 1, got {array.sum(axis=1).tolist()}"
        )
    if (array[(privacy_loss == 0) & (privacy_loss > 0).any(axis=1, keepdims=True)] != 0).any():
        raise ContractError(
            f"aggregation rule {name!r} puts a weight on an owner who sells nothing"
        )
    return array


def data_shares(data_size: Floats) -> Floats:
    """W_i = d_i / sum(d), (K, n)."""
    return np.asarray(data_size / data_size.sum(axis=1, keepdims=True))


def normalised(scores: Floats, data_size: Floats) -> Floats:
    """Scores (K, n) to weights; rows of zeros become data shares."""
    total = scores.sum(axis=1, keepdims=True)
    empty = total <= 0
    return np.where(empty, data_shares(data_size), scores / np.where(empty, 1.0, total))
