"""What two counts say about a privacy loss: lower bounds that hold with a stated confidence.

An event came in some of `draws` releases of each of two gradients. Clopper-Pearson bounds hold for
both chances together with the confidence, whatever they are: p is at least p_low, and q at most
q_high. If every event has p <= exp(e) q + delta, then e is at least log((p_low - delta) / q_high).
"""

from __future__ import annotations

import math

from flmarket_sim.perturbation.gaussian import delta_of_ratio, least_ratio

HALVINGS = 100
LARGEST = 500.0  # the largest loss that is looked for


def chance_bounds(likely: int, unlikely: int, draws: int, confidence: float) -> tuple[float, float]:
    """The least chance of the event that came `likely` times, the largest of the other."""
    from scipy.special import betaincinv  # takes 0.2 s, and a run does not need it

    risk = (1.0 - confidence) / 2.0
    least = betaincinv(likely, draws - likely + 1, risk) if likely else 0.0
    most = betaincinv(unlikely + 1, draws - unlikely, 1.0 - risk) if unlikely < draws else 1.0
    return float(least), float(most)


def lower_bound(
    likely: int, unlikely: int, draws: int, confidence: float, delta: float = 0.0
) -> float:
    """Of e, for any perturbation that promises e, or (e, delta)."""
    least, most = chance_bounds(likely, unlikely, draws, confidence)
    return max(math.log((least - delta) / most), 0.0) if least > delta else 0.0


def gaussian_bound(
    likely: int, unlikely: int, draws: int, confidence: float, delta: float
) -> float:
    """Of e at `delta`, for a gradient plus Gaussian noise and for nothing else.

    A half-space has the chances Phi(x) and Phi(x - mu), where mu is the distance of the two
    gradients in standard deviations. So mu is at least Phi^-1(p_low) - Phi^-1(q_high), and mu with
    delta determines e.
    """
    from scipy.special import ndtri

    least, most = chance_bounds(likely, unlikely, draws, confidence)
    distance = float(ndtri(least) - ndtri(most))  # minus infinity where a count says nothing
    return loss_of_distance(distance, delta) if distance > 0 else 0.0


def loss_of_distance(distance: float, delta: float) -> float:
    """The least e with which gradients `distance` standard deviations apart keep (e, delta)."""
    low, high = 0.0, LARGEST
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if delta_of_ratio(1.0 / distance, middle) > delta:
            low = middle
        else:
            high = middle
    return low


def counts_if_tight(
    likely: int, draws: int, privacy_loss: float, delta: float = 0.0
) -> tuple[int, int]:
    """The counts of two events whose chances differ by just as much as the claim allows."""
    return likely, round(max(likely - delta * draws, 0.0) * math.exp(-privacy_loss))


def middle_counts(draws: int, privacy_loss: float, delta: float) -> tuple[int, int]:
    """The counts beyond the middle of two gradients under the least sufficient Gaussian noise."""
    from scipy.special import ndtr

    half = float(ndtr(0.5 / least_ratio(privacy_loss, delta)))
    return round(half * draws), round((1.0 - half) * draws)
