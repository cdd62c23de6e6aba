"""Where gradients are brought before they are perturbed: balls in three norms, or the sphere.

Norms are computed in float64 and balls are smaller by one part in 10^9, so that rounding never
leaves a gradient outside (docs/theory.md, section 5).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Domain = Literal["l1", "l2", "linf", "sphere"]
MARGIN = 1.0 - 1e-9  # rounding must never leave a norm above the threshold
ELEMENTS = 2**20  # numbers in memory at once
LEAST_LENGTH, MOST_LENGTH = 1e-140, 1e140  # beyond, squares of coordinates are lost to rounding


def norms(gradients: Floats, domain: Domain) -> Floats:
    """(n,) norms of gradients (n, D) in the norm of a domain; infinite if one is not finite.

    Long rows are processed one by one, since the gradients of a round can fill most of the memory.
    """
    count, dimension = gradients.shape
    result = np.empty(count)
    step = max(1, ELEMENTS // max(dimension, 1))
    with np.errstate(over="ignore", invalid="ignore"):
        for begin in range(0, count, step):
            rows = gradients[begin : begin + step]
            if domain == "l1":
                result[begin : begin + step] = np.abs(rows).sum(axis=1)
            elif domain == "linf":
                result[begin : begin + step] = np.abs(rows).max(axis=1, initial=0.0)
            else:
                result[begin : begin + step] = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    result[np.isnan(result)] = np.inf
    return result


def are_finite(gradients: Floats) -> NDArray[np.bool_]:
    """(n,) whether all coordinates of a gradient are finite numbers."""
    step = max(1, ELEMENTS // max(gradients.shape[1], 1))
    parts = [
        np.isfinite(gradients[begin : begin + step]).all(axis=1)
        for begin in range(0, len(gradients), step)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, bool)


def in_domain(gradients: Floats, domain: Domain, clip: float) -> Floats:
    """(n, D) gradients in a domain of radius `clip`, in new memory.

    In an L1 or L2 ball a long gradient is shortened, in a box each coordinate is cut off, and on
    the sphere every gradient gets the length `clip`. A gradient of zeros has no direction: on the
    sphere it becomes the first axis. A gradient that is not finite counts as one of zeros, whatever
    it is, so that every input has its one place in the domain.
    """
    gradients = np.asarray(gradients, np.float64)
    finite = are_finite(gradients)
    if not finite.all():
        gradients = np.where(finite[:, None], gradients, 0.0)
    if domain == "linf":
        return np.clip(gradients, -clip, clip)
    length = norms(gradients, domain)
    radius = clip if domain == "sphere" else clip * MARGIN
    on_edge = (length > radius) if domain != "sphere" else np.full(len(length), True)
    squares_lost = on_edge & ~((length > LEAST_LENGTH) & (length < MOST_LENGTH))
    usual = np.where(squares_lost | ~on_edge, radius, length)
    prepared = np.asarray(gradients * np.where(on_edge, radius / usual, 1.0)[:, None])
    if squares_lost.any():
        prepared[squares_lost] = _directions(gradients[squares_lost], domain) * radius
    return prepared


def _directions(gradients: Floats, domain: Domain) -> Floats:
    """Gradients of norm 1, also where the squares of coordinates are no numbers; zeros become the
    first axis."""
    _, exponent = np.frexp(np.abs(gradients).max(axis=1))
    scaled = np.ldexp(gradients, -exponent[:, None])  # exact: the largest is in [1/2, 1)
    scaled[~scaled.any(axis=1), 0] = 1.0
    return np.asarray(scaled / norms(scaled, domain)[:, None])


def radius(domain: Domain, dimension: int, clip: float) -> float:
    """The largest L2 norm of a gradient in a domain."""
    return clip * math.sqrt(dimension) if domain == "linf" else clip
