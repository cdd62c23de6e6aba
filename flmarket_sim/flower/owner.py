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
from flmarket_sim.flower.library import say
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
    classes          how many classes her class numbers are of, which everybody may know: she bids
                     only where the buyer's model has as many. None: she does not say
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
    classes: int | None = None
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
        self._check_records()
        columns = family_codes(np.array([self.family])), self.rate, self.privacy_budget, self.size
        types = OwnerTypes(columns[0], *(np.array([float(value)]) for value in columns[1:]))
        object.__setattr__(self, "types", types)

    def _check_records(self) -> None:
        """What is wrong with her records is found here, where no server can see it."""
        who = f"owner {self.name!r}"
        if len(np.shape(self.y)) != 1 or not len(np.asarray(self.y)):
            raise InputError(f"{who} needs records: y must have shape (records,)")
        try:
            x, y = np.asarray(self.x, np.float32), np.asarray(self.y)
            with np.errstate(invalid="ignore"):
                whole = y.astype(np.int64)
        except (TypeError, ValueError) as error:
            raise InputError(f"x and y of {who} must be arrays of numbers: {error}") from None
        if x.ndim != 2 or len(x) != len(y):
            raise InputError(f"x of {who} must have shape ({len(y)}, features), not {x.shape}")
        end = math.inf if self.classes is None else self.classes
        if (whole != y).any() or whole.min() < 0 or whole.max() >= end:
            among = "0, 1, 2, ..." if self.classes is None else f"0 to {self.classes - 1}"
            raise InputError(f"class numbers in y of {who} must be among {among}")

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

    def check(self, terms: Terms) -> None:
        """Refuses terms under which she could not sell, by what she tells everybody alone: it does
        not look at her records."""
        self.perturbation(terms)
        if not terms.classes:  # a market without learning
            return
        features = np.shape(self.x)[1]
        if terms.features != features:
            raise InputError(
                f"the buyer's model takes {terms.features} features, and the records of owner "
                f"{self.name!r} have {features}"
            )
        if self.classes not in (None, terms.classes):
            raise InputError(
                f"the buyer's model has {terms.classes} classes, and the records of owner "
                f"{self.name!r} are of {self.classes}"
            )

    def update(
        self, terms: Terms, parameters: Floats, records: int, streams: Streams, key: tuple[int, int]
    ) -> Floats:
        """(1, D) what her model gives at these parameters on so many of her records, in the round
        `key` = (round, buyer). It must not leave her: see `perturbed`.

        Not a number stands for the work of a model that fails. Whether it fails may depend on her
        records, so nobody else may learn of it; she does.
        """
        number = np.array([self.number or 0])
        offered, sold = np.array([self.size]), np.array([records])
        model, learning = self._model(terms, len(parameters)), Learning(**terms.learning)
        try:
            return owner_updates(
                model,
                learning,
                parameters,
                self._data(terms),
                np.arange(self.size)[sold_part(offered, sold, streams, number, key)],
                sold,
                streams,
                number,
                *key,
            )
        except Exception as error:  # her own model may fail in any way
            say(f"{self.name}'s model failed, and zeros are sold in its place: {error!r}")
            return np.full((1, len(parameters)), np.nan)

    def perturbed(
        self, terms: Terms, raw: Floats, loss: float, streams: Streams, key: tuple[int, int]
    ) -> tuple[Floats, Release]:
        """(D,) the gradient `raw` (1, D) as it leaves her, and how. `raw` is overwritten.

        Zeros leave in the place of a gradient that cannot be perturbed, so nobody sees which it is.
        """
        perturbation = self.perturbation(terms)
        noise = create_noise(self.noise, perturbation, terms.clip, streams)

        def left(gradient: Floats) -> tuple[Floats, Release]:
            release = Release(gradient, [loss], perturbation, terms.clip, noise)
            return release.leave(0, self.number or 0, *key), release

        try:
            return left(raw)
        except Exception as error:
            say(f"zeros are sold in the place of {self.name}'s gradient: {error!r}")
            return left(np.full(raw.shape, np.nan))

    def _data(self, terms: Terms) -> Dataset:
        x, y = np.asarray(self.x, np.float32), np.asarray(self.y, np.int64)
        if y.max() >= terms.classes:
            raise InputError(f"class number {y.max()} is not one of the buyer's {terms.classes}")
        return Dataset(x, y, x[:0], y[:0], tuple(map(str, range(terms.classes))))

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
