"""The card of the league: a fixed list of markets, with a version and a hash."""

from __future__ import annotations

import hashlib
import json
import tomllib
from functools import cache
from importlib import resources
from typing import Any, Literal

from pydantic import Field

from flmarket_sim.aggregation.market_error import MarketError, coordinate_error, error_of_kappa
from flmarket_sim.experiments.market_runs import changed
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.part import Part
from flmarket_sim.scenario.scenario_file import build_scenario

Size = Literal["quick", "full"]


class Sizes(Part):
    """How much is measured in each market; card.toml says of what."""

    decisions: int = Field(ge=1)
    probed: int = Field(ge=1)
    together: int = Field(ge=1)
    rest: int = Field(ge=1)
    searched_in: list[str] | None = None
    seeds: int = Field(ge=1)
    effort: str


class CardMarket(Part):
    """One market of the card.

    changes    what it changes of the card's base
    kappa      what its error counts: None is the paper's reading, a number V = kappa / e^2
    draws      how often owners and a budget are drawn; a size of the card takes the first of them
    attacked   whether its owners are searched for lies (searching a hundred bidders would take
               longer than all other markets together)
    """

    name: str
    why: str
    seed: int
    changes: dict[str, Any] = {}
    kappa: float | None = None
    draws: int = Field(200, ge=1)
    attacked: bool = True

    def error(self) -> MarketError:
        return coordinate_error() if self.kappa is None else error_of_kappa(self.kappa)


class Card(Part):
    """The markets of the league and the sizes of its two forms."""

    version: int
    sizes: dict[Size, Sizes]
    base: dict[str, Any]
    markets: list[CardMarket]
    training: dict[str, Any]

    @property
    def sha256(self) -> str:
        """The hash of everything on the card."""
        return _sha256(self.model_dump(mode="json"))

    def market_sha256(self, market: CardMarket) -> str:
        """The hash of everything that the draws of a market depend on."""
        return _sha256({"base": self.base, "market": market.model_dump(mode="json")})

    def tests(self, market: CardMarket, size: Size) -> list[str]:
        """The names of the tests that a size of the card holds in a market."""
        if not market.attacked:
            return ["decisions"]
        searched_in = self.sizes[size].searched_in
        searched = searched_in is None or market.name in searched_in
        return ["decisions", "lies", *(["names", "coalitions", "rest"] if searched else [])]

    def market(self, name: str) -> CardMarket:
        return next(market for market in self.markets if market.name == name)

    def scenario(self, market: CardMarket) -> Scenario:
        """The scenario of a market."""
        first = build_scenario(self.base | {"name": market.name, "seed": market.seed})
        paths = {path.replace(".", "__"): value for path, value in market.changes.items()}
        return changed(first, **paths)

    def training_scenario(self, seed: int = 0) -> Scenario:
        """The scenario of the market that trains a model, with one of its seeds."""
        tables = {key: value for key, value in self.training.items() if key != "why"}
        return build_scenario(tables | {"name": "training", "seed": tables["seed"] + seed})


def _sha256(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@cache
def card() -> Card:
    """The card of this version of the package."""
    return Card.model_validate(tomllib.loads(_text()))


def _text() -> str:
    return resources.files("flmarket_sim.league").joinpath("card.toml").read_text("utf-8")
