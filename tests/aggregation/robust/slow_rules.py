"""Slow, obvious twins of the robust rules, for weights that are multiples of 1 / COPIES."""

import numpy as np
from scipy.optimize import minimize

COPIES = 20


def scales(variance):
    return np.sqrt(variance / np.mean(variance))


def repeated(values, weights):
    """Each value as often as its weight says."""
    counts = np.rint(np.asarray(weights) * COPIES).astype(int)
    assert np.allclose(counts, np.asarray(weights) * COPIES)
    return sorted(value for value, count in zip(values, counts, strict=True) for _ in range(count))


def coordinate_median(messages, weights, variance):
    """`variance` has to be the same for all, so that standardising changes nothing."""
    return np.array([np.median(repeated(column, weights)) for column in messages.T])


def trimmed_mean(messages, weights, trim):
    cut = round(trim * COPIES)
    return np.array(
        [np.mean(repeated(column, weights)[cut : COPIES - cut]) for column in messages.T]
    )


def sum_of_distances(x, messages, weights, variance):
    pull = weights * scales(variance)
    return sum(a * np.linalg.norm(m - x) for a, m in zip(pull / pull.sum(), messages, strict=True))


def geometric_median_value(messages, weights, variance):
    """The least sum of distances that a general minimiser finds from each message and the mean."""
    starts = [*messages, weights @ messages]
    found = [
        minimize(
            sum_of_distances,
            start,
            (messages, weights, variance),
            "Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 5000},
        ).fun
        for start in starts
    ]
    return min(found)


def geometric_median_gap(x, points, weights):
    """How far the sum of distances at x is above its minimum at most, over itself.

    It is convex, so it is 2 |g| / sum(a) for the shortest g among its subgradients at x.
    """
    pull, own = np.zeros(len(x)), 0.0
    for point, weight in zip(points, weights, strict=True):
        distance = np.linalg.norm(point - x)
        if distance == 0.0:
            own += weight
        else:
            pull += weight * (x - point) / distance
    return 2.0 * max(np.linalg.norm(pull) - own, 0.0) / sum(weights)


def geometric_median_of_three_axes(weight):
    """The median of the unit vectors of three axes with the weights (weight, 1, 1).

    It lies between the first and the middle of the others; halving finds where the sum of distances
    stops to fall.
    """
    first, middle = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.5, 0.5])
    low, high = 0.0, 1.0
    for _ in range(200):
        part = (low + high) / 2
        x = first + part * (middle - first)
        along = (middle - first) / np.linalg.norm(middle - first)
        slope = weight + 2 * ((x - [0.0, 1.0, 0.0]) @ along) / np.linalg.norm(x - [0.0, 1.0, 0.0])
        low, high = (part, high) if slope < 0 else (low, part)
    return first + low * (middle - first)


def krum_order(messages, variance, cheats, unit):
    """Places of the messages from the lowest score on, and how many may be anything.

    Scores are in units of `unit` (n,).
    """
    n = len(messages)
    if n == 1:
        return np.zeros(1, int), 0
    f = 0
    while f + 1 <= cheats * n + 1e-9 and 2 * (f + 1) + 2 < n:
        f += 1
    scores = []
    for i in range(n):
        others = [
            np.sum((messages[i] - messages[j]) ** 2) - variance[j] for j in range(n) if j != i
        ]
        scores.append(np.mean(sorted(others)[: max(n - f - 2, 1)]) / unit[i])
    return np.argsort(scores, kind="stable"), f


def norm_bounding(messages, weights, variance, factor):
    scale = scales(variance)
    norms = [np.linalg.norm(m) / s for m, s in zip(messages, scale, strict=True)]
    bound = factor * np.median(repeated(norms, weights))
    total = np.zeros(messages.shape[1])
    for message, weight, s in zip(messages, weights, scale, strict=True):
        norm = np.linalg.norm(message)
        total += weight * message * (1.0 if norm <= bound * s else bound * s / norm)
    return total
