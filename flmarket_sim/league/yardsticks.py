"""The yardsticks of the card: the second-best floor and first-best of each draw of its markets.

They take minutes, so they come with the package in yardsticks.json, made by `python -m
upkeep.yardsticks`. Draws are measured in blocks, each alone, so that a test can repeat one block.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.first_best import first_best
from flmarket_sim.auctions.second_best import second_best
from flmarket_sim.errors import InputError
from flmarket_sim.league.card import Card, CardMarket
from flmarket_sim.league.card_draws import draws
from flmarket_sim.owners.rate_prior import rate_prior
from flmarket_sim.storage.atomic_files import write_text
from flmarket_sim.storage.sealed_files import read_sealed, sealed

Floats = NDArray[np.float64]
BLOCK = 50  # draws
DIGITS = 9  # that are kept of a number
AGAIN = "Measure the yardsticks again: `python -m upkeep.yardsticks`"


class Yardsticks(NamedTuple):
    """Errors (K,) to compare with: the mean of the first cannot be beaten by a truthful mechanism,
    each of the second by nobody."""

    floor: Floats
    first_best: Floats


def blocks(market: CardMarket) -> list[slice]:
    return [slice(first, first + BLOCK) for first in range(0, market.draws, BLOCK)]


def measured(played: Card, market: CardMarket, block: slice) -> Yardsticks:
    """The yardsticks of one block of draws."""
    scenario = played.scenario(market)
    truth, budget = draws(played, market)
    error, owners = market.error(), truth.take(block)
    seed = scenario.seed + block.start
    floor = second_best(owners, budget[block], rate_prior(scenario), error, seed=seed).floor
    return Yardsticks(floor, first_best(owners, budget[block], error=error).error_bound)


def shipped(played: Card, market: CardMarket) -> Yardsticks:
    """The yardsticks of all draws, as they come with the package."""
    content = _file().get(market.name)
    if content is None or content["market_sha256"] != played.market_sha256(market):
        raise InputError(f"yardsticks.json is not of the market {market.name!r} as it is. {AGAIN}")
    return Yardsticks(np.array(content["floor"]), np.array(content["first_best"]))


def write(path: Path, played: Card, found: dict[str, list[Yardsticks]]) -> None:
    """Writes the yardsticks of all markets, each with the hash of what it depends on."""
    content = {
        name: {"market_sha256": played.market_sha256(played.market(name))}
        | {
            kind: [float(f"{value:.{DIGITS}g}") for part in parts for value in getattr(part, kind)]
            for kind in Yardsticks._fields
        }
        for name, parts in found.items()
    }
    write_text(path, json.dumps(sealed({"markets": content})) + "\n")


@cache
def _file() -> dict[str, Any]:
    place = resources.files("flmarket_sim.league").joinpath("yardsticks.json")
    markets: dict[str, Any] = read_sealed(Path(str(place)), AGAIN, needed=True)["markets"]
    return markets
