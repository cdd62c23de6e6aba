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


def norms(gradients: Floats, domain: Domain) -> Floats:
    """(n,) norms of gradients (n, D) in the norm of a domain.

    Long rows are processed one by one, since the gradients of a round can fill most of the memory.
    """
    count, dimension = gradients.shape
    result = np.empty(count)
    step = max(1, ELEMENTS // max(dimension, 1))
    for begin in range(0, count, step):
        rows = gradients[begin : begin + step]
        if domain == "l1":
            result[begin : begin + step] = np.abs(rows).sum(axis=1)
        elif domain == "linf":
            result[begin : begin + step] = np.abs(rows).max(axis=1, initial=0.0)
        else:
            result[begin : begin + step] = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return result


def in_domain(gradients: Floats, domain: Domain, clip: float) -> Floats:
    """(n, D) gradients in a domain of radius `clip`, in new memory.

    In an L1 or L2 ball a long gradient is shortened, in a box each coordinate is cut off, and on
    the sphere every gradient gets the length `clip`. A gradient of zeros has no direction: on the
    sphere it becomes the first axis.
    """
    gradients = np.asarray(gradients, np.float64)
    if domain == "linf":
        return np.clip(gradients, -clip, clip)
    length = norms(gradients, domain)
    if domain == "sphere":
        empty = length == 0
        prepared = gradients * (clip / np.where(empty, 1.0, length))[:, None]
        prepared[empty, 0] = clip
        return np.asarray(prepared)
    limit = clip * MARGIN
    factor = np.where(length > limit, limit / np.maximum(length, limit), 1.0)
    return np.asarray(gradients * factor[:, None])


def radius(domain: Domain, dimension: int, clip: float) -> float:
    """The largest L2 norm of a gradient in a domain."""
    return clip * math.sqrt(dimension) if domain == "linf" else clip
