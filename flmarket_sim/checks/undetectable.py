"""What local privacy hides: no test tells a cheat from an honest owner better than these bounds.

A test has a level (its chance of accusing an honest owner) and a power (of accusing a cheat).
Nothing but noise is a message that an honest owner of another gradient might have sent: the release
of zeros, or of a random direction. So (e, delta)-privacy, P(S) <= exp(e) Q(S) + delta both ways, is
a bound on every test, for every perturbation, by whoever knows everything but the noise:

    power <= min(exp(e) level + delta, 1 - exp(-e) (1 - level - delta))
    power - level <= TV <= (exp(e) - 1 + 2 delta) / (exp(e) + 1),  tanh(e / 2) for delta = 0

The first line is privacy for the accusing event and for its complement, and the second is the point
where the two bounds of the first cross. Tests that know the gradient exactly:

    PrivUnit (a gradient of full length, noise a uniform direction): the likelihood has two values,
    in the cap and outside, of honest chances p, 1 - p and noise chances q, 1 - q. TV = p - q.

    Laplace: TV <= 1 - exp(-|g|_1 / (2 b)) <= 1 - exp(-e / 4), with b = 2 C / e, reached by a
    gradient with one coordinate. Proof: the integral of min(f, g) of two products is at least the
    product of the integrals, and for one coordinate that is exp(-|g_j| / (2 b)).

More noise than sold is another question, since it is no release at the sold loss. If she sends
additive noise of a larger scale, its length shows it. If she sends points of the same cap with a
smaller chance p', the same two events are all there is: TV = p - p'.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.errors import InputError
from flmarket_sim.perturbation.priv_unit import PrivUnit, best_cap, sphere_dimension

Floats = NDArray[np.float64]


def most_power(level: ArrayLike, privacy_loss: float, delta: float = 0.0) -> Floats:
    """The power that no test against nothing but noise exceeds at a level, whatever it knows."""
    alpha = _levels(level)
    with np.errstate(over="ignore"):
        few = np.where(alpha > 0, np.exp(privacy_loss) * alpha, 0.0) + delta
    many = 1.0 - math.exp(-privacy_loss) * (1.0 - alpha - delta)
    return np.asarray(np.clip(np.minimum(few, many), 0.0, 1.0))


def largest_distance(privacy_loss: float, delta: float = 0.0) -> float:
    """The largest total variation between releases of two gradients: tanh(e / 2) if delta is 0."""
    least = math.exp(-privacy_loss)
    return (1.0 - least + 2.0 * delta * least) / (1.0 + least)


def two_events_power(level: ArrayLike, honest: float, cheat: float) -> Floats:
    """The best test where all that differs is one event: its chances under both, honest >= cheat.

    Without the event the likelihood of a cheat is larger, so these messages are accused first, by
    lot if the level is below their honest chance (Neyman and Pearson).
    """
    alpha = _levels(level)
    outside = 1.0 - honest
    first = np.minimum(alpha, outside) * ((1.0 - cheat) / outside if outside > 0 else 0.0)
    if outside <= 0:
        first = np.full_like(alpha, 1.0 - cheat)
    rest = np.maximum(alpha - outside, 0.0) * (cheat / honest)
    return np.asarray(np.minimum(first + rest, 1.0))


def cap_chances(privacy_loss: float, dimension: int, length: str = "kept") -> tuple[float, float]:
    """(p, q) of PrivUnit for gradients of D coordinates: the cap's chances, honest and uniform."""
    whole = sphere_dimension(dimension, "kept" if length == "kept" else "unit", PrivUnit.name)
    cap = best_cap(np.array([privacy_loss]), whole)
    return float(cap.chance[0]), float(cap.mass[0])


def weaker_cap_chance(sold: float, sent: float, dimension: int, length: str = "kept") -> float:
    """p' of a cheat who sold one loss and sends another with the cap that hides it.

    Her messages have the length and the cap of what she sold, and the ratio exp(sent) of densities
    in and outside the cap: at 0 they are nothing but noise.
    """
    if not 0 <= sent <= sold:
        raise InputError(f"a cheat sends at most what she sold, {sold:g} (got {sent:g})")
    _, mass = cap_chances(sold, dimension, length)
    return mass / (mass + (1.0 - mass) * math.exp(-sent))


def more_laplace_noise_power(level: ArrayLike, factor: float, dimension: int) -> Floats:
    """The best test of Laplace noise of `factor` times the scale sold, for a known gradient.

    The likelihood ratio rises with |m - g|_1 / b, which is a Gamma(D) number, and `factor` times
    one for a cheat.
    """
    from scipy.special import gammaincc, gammainccinv

    threshold = gammainccinv(dimension, _levels(level))
    return np.asarray(gammaincc(dimension, threshold / _more(factor)))


def more_gaussian_noise_power(level: ArrayLike, factor: float, dimension: int) -> Floats:
    """The same for Gaussian noise, where |m - g|^2 is chi-squared."""
    from scipy.special import chdtrc, chdtri

    threshold = chdtri(dimension, _levels(level))
    return np.asarray(chdtrc(dimension, threshold / _more(factor) ** 2))


def _levels(level: ArrayLike) -> Floats:
    alpha = np.asarray(level, np.float64)
    if not ((alpha >= 0) & (alpha <= 1)).all():
        raise InputError("a level lies between 0 and 1")
    return alpha


def _more(factor: float) -> float:
    if not factor >= 1.0:
        raise InputError(f"more noise than sold has a factor of at least 1 (got {factor:g})")
    return factor
