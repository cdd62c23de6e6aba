"""A real owner: her records, her model, what her privacy is worth to her, and what she computes."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim import auctions
from flmarket_sim.auctions.auction import Offer, SellsInTurn
from flmarket_sim.errors import InputError, plugin_errors
from flmarket_sim.flower.messages import MessageError, Named, Terms
from flmarket_sim.learning.buyer_model import BuyerModel, build_model
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.learning.local_training import owner_updates
from flmarket_sim.market.cohort_gradients import sold_part
from flmarket_sim.market.cohort_reports import within_lifetime
from flmarket_sim.market.messages import ReportColumns
from flmarket_sim.owners.family_table import family_codes
from flmarket_sim.owners.owner_types import OwnerTypes
from flmarket_sim.owners.stated_valuation import StatedValuations
from flmarket_sim.owners.valuation import covers
from flmarket_sim.perturbation.perturbation import Perturbation
from flmarket_sim.plugins import registry
from flmarket_sim.privacy.noise import create_noise
from flmarket_sim.privacy.release import Release
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import Learning, Model

Floats = NDArray[np.float64]
Mechanism = Literal["auction", "perturbation", "model"]


@dataclass(frozen=True)
class Owner:
    """A data owner as she describes herself; nothing of it but her name and bids leaves her.

    name             how the broker calls her
    x, y             her records: features (n, features), and class numbers (n,)
    folder           a folder of hers, for her ledger; nobody else writes there
    model            a class of torch.nn.Module, built as Class(features, classes, **options), where
                     the buyer's model is not one of this package
    family, rate     her valuation: what a privacy loss on her records is worth to her
    privacy_budget   the largest privacy loss of one sale
    lifetime_budget  the largest sum of privacy losses over all runs; None: no end
    noise            "hardened" is fit for a release; "simulation" is for tests and can be repeated
    accept           a "rational" owner declines what pays less than her valuation
    number, seed     of an owner whom a scenario has drawn; real owners have neither
    """

    name: str
    x: ArrayLike
    y: ArrayLike
    folder: str | Path
    model: type | None = None
    family: str = "linear"
    rate: float = 1.0
    privacy_budget: float = 1.0
    lifetime_budget: float | None = 10.0
    noise: Literal["hardened", "simulation"] = "hardened"
    accept: Literal["rational", "always"] = "rational"
    number: int | None = None
    seed: int | None = None
    types: OwnerTypes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > 200:
            raise InputError("an owner needs a name of at most 200 characters")
        if self.noise not in ("hardened", "simulation"):
            raise InputError(f"noise is 'hardened' or 'simulation', not {self.noise!r}")
        if self.accept not in ("rational", "always"):
            raise InputError(f"accept is 'rational' or 'always', not {self.accept!r}")
        positive = {"rate": self.rate, "privacy_budget": self.privacy_budget}
        if self.lifetime_budget is not None:
            positive["lifetime_budget"] = self.lifetime_budget
        for what, number in positive.items():
            if not (math.isfinite(number) and number > 0):
                raise InputError(f"{what} of owner {self.name!r} must be above 0, not {number}")
        if len(np.shape(self.y)) != 1 or not len(np.asarray(self.y)):
            raise InputError(f"owner {self.name!r} needs records: y must have shape (records,)")
        columns = family_codes(np.array([self.family])), self.rate, self.privacy_budget, self.size
        types = OwnerTypes(columns[0], *(np.array([float(value)]) for value in columns[1:]))
        object.__setattr__(self, "types", types)

    @property
    def size(self) -> int:
        """The number of her records."""
        return len(np.asarray(self.y))

    def report(self, terms: Terms, left: float) -> ReportColumns | None:
        """Her bid, which is the truth within what is `left` for life; None: nothing to sell."""
        sold_out, _, budget = within_lifetime(self.types.privacy_budget, np.array([left]))
        if sold_out[0]:
            return None
        values = self.types.table(terms.levels, budget)
        size, stated = self.types.data_size, StatedValuations.of(self.types)
        return ReportColumns(values, budget, size, stated)

    def value(self, privacy_loss: float, records: float) -> float:
        """What a sale is truly worth to her."""
        return float(self.types.value(np.array([privacy_loss]), np.array([records]))[0])

    def agrees(self, privacy_loss: float, records: float, payment: float) -> bool:
        """Whether she sells at this price."""
        value = self.value(privacy_loss, records)
        return self.accept == "always" or bool(covers(payment, value))

    def favourite(self, terms: Terms, bid: ReportColumns, offer: Offer) -> tuple[float, ...]:
        """Privacy loss, payment and records that she takes from a menu by her valuation."""
        made = built_in("auction", terms.auction)
        auction = auctions.create(made.name, **made.options)
        if not isinstance(auction, SellsInTurn):
            raise MessageError(f"auction {made.name!r} has no menus")
        with plugin_errors("auction", auction.name):
            chosen = auction.choice(auction.reading(bid.batch()), np.zeros(1, np.int64), offer)
        return tuple(float(column[0]) for column in chosen)

    def perturbation(self, terms: Terms) -> Perturbation:
        """The perturbation that the terms name; only those of this package are known to be one."""
        spec = built_in("perturbation", terms.perturbation)
        made: Perturbation = registry.perturbations.create(spec.name, **spec.options)
        create_noise(self.noise, made, terms.clip, Streams(0))  # refuses noise that is not there
        return made

    def streams(self) -> Streams:
        """Where her randomness comes from: the operating system, unless she is drawn herself."""
        return Streams(secrets.randbits(63) if self.seed is None else self.seed)

    def update(
        self, terms: Terms, parameters: Floats, records: int, streams: Streams, key: tuple[int, int]
    ) -> Floats:
        """(1, D) what her model gives at these parameters on so many of her records, in the round
        `key` = (round, buyer). It must not leave her: see `perturbed`."""
        number = np.array([self.number or 0])
        offered, sold = np.array([self.size]), np.array([records])
        model = self._model(terms, len(parameters))
        return owner_updates(
            model,
            Learning(**terms.learning),
            parameters,
            self._data(terms),
            np.arange(self.size)[sold_part(offered, sold, streams, number, key)],
            sold,
            streams,
            number,
            *key,
        )

    def perturbed(
        self, terms: Terms, raw: Floats, loss: float, streams: Streams, key: tuple[int, int]
    ) -> tuple[Floats, Release]:
        """(D,) the gradient `raw` (1, D) as it leaves her, and how. `raw` is overwritten."""
        perturbation = self.perturbation(terms)
        noise = create_noise(self.noise, perturbation, terms.clip, streams)
        release = Release(raw, [loss], perturbation, terms.clip, noise)
        return release.leave(0, self.number or 0, *key), release

    def _data(self, terms: Terms) -> Dataset:
        x = np.asarray(self.x, np.float32)
        y = np.asarray(self.y, np.int64)
        if x.shape != (self.size, terms.features):
            raise InputError(
                f"the buyer's model takes {terms.features} features, and the records of owner "
                f"{self.name!r} have shape {x.shape}"
            )
        if y.min() < 0 or y.max() >= terms.classes:
            raise InputError(
                f"owner {self.name!r} has class numbers outside 0 to {terms.classes - 1}"
            )
        names = tuple(str(number) for number in range(terms.classes))
        return Dataset(x, y, x[:0], y[:0], names)

    def _model(self, terms: Terms, dimension: int) -> BuyerModel:
        model: BuyerModel
        if self.model is None:
            spec = built_in("model", terms.model)
            made = Model(name=spec.name, **spec.options)
            model = build_model(made, terms.features, terms.classes, Streams(0), 0)
        else:
            from flmarket_sim.learning.torch_model import TorchModel

            options = terms.model.options
            model = TorchModel(self.model, terms.features, terms.classes, options, seed=0)
        if model.dimension != dimension:
            raise InputError(
                f"the model of owner {self.name!r} has {model.dimension} parameters, and the "
                f"buyer's has {dimension}"
            )
        return model


def built_in(kind: Mechanism, named: Named) -> Named:
    """A plug-in that a message names, if it is one of this package: a broker's word runs no code
    of his on an owner's machine."""
    if named.name not in registry.BUILT_IN[kind]:
        raise MessageError(
            f"the broker names the {kind} {named.name!r}, which is not one of this package"
        )
    return named
