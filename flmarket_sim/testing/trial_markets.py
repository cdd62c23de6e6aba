"""Trial markets: several sizes, heavy-tailed records, budgets from too little to plenty.

The owners of class "any" have the smooth families of the paper, or valuations that no family of the
paper has (trial_valuations.py), half and half.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import InputError
from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.owners.family_table import family_codes
from flmarket_sim.testing.trial_valuations import TRIAL_VALUATIONS

Floats = NDArray[np.float64]
SIZES = (1, 2, 3, 5, 10)  # owners in a market
FACTORS = (0.1, 2.0)  # the buyer's money as a factor of what everything for sale is worth
LEVELS = 8
OTHERS = 0.5  # of the owners of class "any": their share with valuations of no family
CLASSES = {"single-minded": ("step",), "any": ("linear", "quadratic", "sqrt", "exponential")}


@dataclass(frozen=True)
class Markets:
    """K markets of n owners: true types and the buyers' money (K,)."""

    truth: Profiles
    money: Floats
    levels: int = LEVELS

    @property
    def shape(self) -> tuple[int, int]:
        return self.truth.shape

    def bids(self) -> BidBatch:
        """The truthful bids."""
        return self.truth.bids(self.levels)


def draw(owners: str, n: int, count: int, rng: np.random.Generator) -> Markets:
    """Markets of one class of owners: types as in the paper, sizes of three orders of magnitude."""
    shape = (count, n)
    family = family_codes(rng.choice(list(CLASSES[owners]), shape))
    rate = rng.uniform(0.5, 1.5, shape)
    privacy_budget = rng.uniform(0.5, 2.0, shape)
    size = np.floor(rng.lognormal(4.0, 1.5, shape)) + 1
    factor = np.exp(rng.uniform(np.log(FACTORS[0]), np.log(FACTORS[1]), count))
    if owners == "any":
        other = family_codes(list(TRIAL_VALUATIONS))[
            rng.integers(len(TRIAL_VALUATIONS), size=shape)
        ]
        family = np.where(rng.random(shape) < OTHERS, other, family)
    truth = Profiles(family, rate, privacy_budget, size)
    return Markets(truth, factor * truth.total_value())


def edges(markets: Markets) -> list[Markets]:
    """The same markets in extreme variants: no money, far too much, equal owners, other levels."""
    truth, money = markets.truth, markets.money
    alike = Profiles(*(np.repeat(c[:, :1], truth.shape[1], axis=1) for c in columns(truth)))
    return [
        Markets(truth, np.zeros_like(money)),
        Markets(truth, 1e3 * money),
        Markets(alike, money),
        Markets(truth, money, levels=1),
        Markets(truth, money, levels=3),
    ]


def columns(truth: Profiles) -> tuple[Any, Any, Any, Any]:
    return truth.family, truth.rate, truth.privacy_budget, truth.data_size


def playable_sizes(auction: Any) -> tuple[int, ...]:
    """The numbers of owners that the auction can play: `SIZES`, or the one it was trained for."""
    rng = np.random.default_rng(0)
    for n in SIZES:
        sample = draw("any", n, 1, rng)
        try:
            auction.decide(sample.bids(), sample.money, rng)
        except InputError as error:
            trained = re.search(r"trained for (\d+) bidders", str(error))
            if trained:
                return (int(trained[1]),)
            return SIZES
        except Exception:  # whatever else goes wrong is for the checks to say
            return SIZES
    return SIZES
