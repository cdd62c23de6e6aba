"""How low an honest message may lie along a direction.

The height of a message m along a unit vector a is <m, a>. `low_height` is the chance that an honest
owner's message lies at most so high, the largest over all gradients of the domain with

    <g, a> >= alignment * (the height of a gradient of full length in the direction a).

At alignment 0 these are the gradients that do not point away from a. Without any such assumption
every low message could be an honest one.

A direction that is itself noise, like a sum of other messages, turns away from a gradient as often
as it turns to it. With `noisy` the spread of <g, a> over such directions is in the law: on a sphere
<V, a> is then taken as that of a uniform V, which it is for every V if a is uniform; to additive
noise a normal <g, a> of standard deviation C / sqrt(D) is added.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.checks.any_gradient import under_any_gradient
from flmarket_sim.checks.simulated_noise import counted, exponentials, releases
from flmarket_sim.checks.sphere_releases import (
    LENGTHS,
    SphereReleases,
    along_the_axis,
    at_an_angle,
    on_a_sphere,
    uniform_below,
)
from flmarket_sim.perturbation.gaussian import Gaussian
from flmarket_sim.perturbation.laplace import Laplace
from flmarket_sim.perturbation.perturbation import Perturbation, delta_of

Floats = NDArray[np.float64]
ROUNDING = 1e-9
BEYOND = 1e9  # times the threshold: what `prepare` brings to full length


def low_height(
    perturbation: Perturbation,
    privacy_loss: Floats,
    clip: float,
    directions: Floats,
    heights: Floats,
    alignment: float = 0.0,
    noisy: bool = False,
) -> Floats:
    """(n,) chances of heights (n,) or lower along unit vectors (n, D), conservative."""
    dimension = directions.shape[1]
    sphere = on_a_sphere(perturbation, privacy_loss, dimension, clip)
    if sphere is not None:
        return _on_sphere(sphere, heights, alignment)
    if type(perturbation) in (Laplace, Gaussian):
        shift = alignment * full_heights(perturbation, directions, clip) if alignment else 0.0
        spread = clip / np.sqrt(dimension) if noisy else 0.0
        return _additive(perturbation, privacy_loss, clip, directions, heights - shift, spread)
    return _simulated(perturbation, privacy_loss, clip, directions, heights)


def full_heights(perturbation: Perturbation, directions: Floats, clip: float) -> Floats:
    """(n,) heights, along unit vectors (n, D), of gradients of full length in their directions."""
    full = perturbation.prepare(directions * (BEYOND * clip), clip)
    return np.asarray(np.einsum("ij,ij->i", full, directions))


def _on_sphere(of: SphereReleases, heights: Floats, alignment: float) -> Floats:
    """For a given cosine the chance is largest at the least cosine (sphere_releases.py)."""
    height = heights / of.radius + ROUNDING
    uniform = uniform_below(height, of.dimension)
    if alignment <= 0 or of.dimension == 1:
        # below the middle, a V around an axis across a is less spread than a uniform one
        above = 1.0 - of.evenly * (1.0 - uniform)
        return np.asarray(np.where(height < 0, uniform, above))
    if not of.rounds:
        return _at(of, height, alignment)
    lengths = np.linspace(alignment, 1.0, LENGTHS) if alignment < 1 else np.ones(1)
    even = of.cap.chance  # the chance of the gradient's own side, if it is not rounded away
    chances = []
    for length in lengths:
        chance = even * (0.5 + 0.5 * length) + (1.0 - even) * (0.5 - 0.5 * length)
        shorter = SphereReleases(
            of.radius, of.dimension, of.extra, of.cap._replace(chance=chance), of.inner, True
        )
        chances.append(_at(shorter, height, alignment / length))
    return np.asarray(np.max(chances, axis=0))


def _at(of: SphereReleases, height: Floats, cosine: float) -> Floats:
    if cosine >= 1.0:
        return along_the_axis(of, height)
    return at_an_angle(of, height, np.full(len(height), cosine))


def _additive(
    perturbation: Perturbation,
    privacy_loss: Floats,
    clip: float,
    directions: Floats,
    heights: Floats,
    spread: float,
) -> Floats:
    """P(<noise, a> + spread N <= height).

    A standard Laplace number is sqrt(2 E) times a normal one, for an exponential E. Given all E the
    height is normal, so the chance is a mean of normal ones over draws of E.
    """
    from scipy.special import ndtr

    scale = perturbation.noise_scale(privacy_loss, clip)  # type: ignore[attr-defined]
    if type(perturbation) is Gaussian:
        return np.asarray(ndtr(heights / np.sqrt(scale**2 + spread**2)))
    drawn = exponentials(directions.shape[1])
    variance = 2.0 * scale**2 * (drawn @ np.square(directions).T) + spread**2
    chances = ndtr(heights / np.sqrt(variance))
    error = 3.0 * chances.std(axis=0) / np.sqrt(len(drawn))
    return np.asarray(np.minimum(chances.mean(axis=0) + error, 1.0))


def _simulated(
    perturbation: Perturbation,
    privacy_loss: Floats,
    clip: float,
    directions: Floats,
    heights: Floats,
) -> Floats:
    """Any perturbation: counted for a gradient of zeros, and then for every gradient."""
    at_zero = np.empty(len(heights))
    for loss in np.unique(privacy_loss):
        rows = privacy_loss == loss
        drawn = releases(perturbation, float(loss), directions.shape[1], clip) @ directions[rows].T
        slack = ROUNDING * np.abs(heights[rows])
        at_zero[rows] = counted((drawn <= heights[rows] + slack).sum(axis=0), len(drawn))
    return under_any_gradient(at_zero, privacy_loss, delta_of(perturbation))
