"""What payments must put at stake before honest noise is an owner's best response.

A payment rule reads messages, and what it pays lies between two numbers whose difference is the
stake: the payment, and a deposit that can be lost. If honest messages and those of a cheat have the
total variation TV, the cheat loses at most stake * TV in expectation, whatever the rule is, and the
rule that pays where honest messages are likelier takes just that. An owner whose privacy loss e is
worth v e saves up to v e by sending less. So honesty is a best response to some rule if and only if

    stake >= v (e - s) / TV(s)   for every loss s that she could send instead.

Results are in units of v e, the cost of what was sold: a stake of 3 is three times the cost.
"""

from __future__ import annotations

import math

import numpy as np

from flmarket_sim.checks.undetectable import cap_chances, largest_distance, weaker_cap_chance
from flmarket_sim.errors import InputError

PARTS = 2000  # losses that a cheat is tried to send


def stake_against_noise(distance: float) -> float:
    """The least stake over the cost, if nothing but noise has this total variation from honesty."""
    if not 0.0 <= distance <= 1.0:
        raise InputError(f"a total variation lies between 0 and 1 (got {distance:g})")
    return math.inf if distance == 0.0 else 1.0 / distance


def stake_of_any_perturbation(privacy_loss: float, delta: float = 0.0) -> float:
    """A lower bound for every perturbation: coth(e / 2) for a pure one."""
    return stake_against_noise(largest_distance(privacy_loss, delta))


def stake_of_caps(privacy_loss: float, dimension: int, length: str = "kept") -> float:
    """The least stake over the cost for PrivUnit, also against cheats who send some of what they
    sold, with the cap that hides it.

    The owner's gain from sending s is v (e - s), and the chance of the cap falls from p to p'(s).
    At s near e the ratio is 1 / (p (1 - p)): there the best cheat is a little one if e is large.
    """
    honest, _ = cap_chances(privacy_loss, dimension, length)
    if honest >= 1.0:
        return math.inf
    sent = privacy_loss * np.arange(PARTS) / PARTS
    lost = [honest - weaker_cap_chance(privacy_loss, float(s), dimension, length) for s in sent]
    needed = (privacy_loss - sent) / np.array(lost)
    return max(float(needed.max()), 1.0 / (honest * (1.0 - honest))) / privacy_loss
