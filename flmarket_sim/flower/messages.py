"""The messages between the broker and real owners: typed records, checked when they arrive.

| type | request | reply |
|---|---|---|
| `query.hello` | `Hello` | `Present` |
| `query.bid` | `BidRequest` | `BidReply` |
| `query.offer` | `OfferRequest`, in an auction that asks in turn | `Choice` |
| `train.sell` | `SaleRequest` | `SaleReply` |
| `query.settle` | `Settlement`, at the end of a run | `Receipt` |

A record travels as one ConfigRecord of Flower. Vectors are bytes: float64, lowest byte first.
Whoever sends a request twice gets the same reply twice, so a broker may ask again after a restart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Self

import numpy as np
import pydantic
from numpy.typing import NDArray

from flmarket_sim.aggregation.rule import LARGEST as LARGEST_VALUE
from flmarket_sim.errors import FlmarketError, shortened
from flmarket_sim.scenario.model import LARGEST, SMALLEST

Floats = NDArray[np.float64]
RECORD = "flmarket"  # the key of the ConfigRecord
CURVE: Final = "curve"
POINTS: Final = "points"
PART: Final = "part"
Number = Annotated[float, pydantic.Field(ge=0)]
Count = Annotated[int, pydantic.Field(ge=0, lt=2**62)]
Text = Annotated[str, pydantic.Field(min_length=1, max_length=200)]


class MessageError(FlmarketError):
    """A message is not one of this market."""


class Wire(pydantic.BaseModel):
    """A record that travels. Fields with their defaults (nothing, none) stay behind."""

    model_config = pydantic.ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False
    )
    type: ClassVar[str]

    def plain(self) -> dict[str, Any]:
        """The values of a ConfigRecord; a table is a text of JSON."""
        values = self.model_dump(exclude_defaults=True)
        return {
            key: json.dumps(value) if isinstance(value, dict) else value
            for key, value in values.items()
        }

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """The record that arrived; refuses anything else."""
        tables = {key for key, field in cls.model_fields.items() if field.annotation is Terms}
        try:
            values = {
                key: Terms.model_validate_json(value)
                if key in tables and isinstance(value, str)
                else value
                for key, value in plain.items()
            }
            return cls.model_validate(values)
        except ValueError as error:
            raise MessageError(
                f"a message is not a {cls.__name__} of this market: {shortened(str(error))}"
            ) from None


class Named(pydantic.BaseModel):
    """A plug-in by its name, with its options."""

    model_config = pydantic.ConfigDict(extra="allow", frozen=True)
    name: Text

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class Terms(pydantic.BaseModel):
    """What an owner has to know to bid and to sell: the public rules of the market.

    levels       M, the shares of a privacy budget at which a bid states values
    clip         the largest norm of a gradient, in the norm of the perturbation
    features, classes   of the buyer's data; 0 in a market without learning
    learning     what owners compute: the scenario's table `learning`
    in_turn      whether the auction sends menus
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    levels: Annotated[int, pydantic.Field(ge=1, le=1000)]
    clip: Annotated[float, pydantic.Field(gt=0)]
    perturbation: Named
    model: Named
    features: Count
    classes: Count
    learning: dict[str, Any]
    auction: Named
    in_turn: bool


class Hello(Wire):
    """Who is there?"""

    type: ClassVar[str] = "query.hello"
    run: Text


class Present(Wire):
    """The name of an owner, and her number where she is one of the scenario's own owners."""

    name: Text
    number: Count | None = None


class RoundMessage(Wire):
    """A request to one owner in a round of a buyer."""

    run: Text
    buyer: Count
    round: Count


class BidRequest(RoundMessage):
    """An auction with this budget is open. It also brings the payments of earlier rounds: of
    buyers `paid_buyers` and rounds `paid_rounds`, the amounts `paid`."""

    type: ClassVar[str] = "query.bid"
    budget: Number
    terms: Terms
    paid_buyers: list[Count] = []
    paid_rounds: list[Count] = []
    paid: list[Number] = []


class BidReply(Wire):
    """An owner's bid; one who does not bid states no values, and need not say why."""

    values: list[Number] | None = None
    privacy_budget: Annotated[float, pydantic.Field(gt=0)] | None = None
    data_size: Annotated[int, pydantic.Field(ge=1, lt=2**62)] | None = None

    def is_valuation(self, levels: int) -> bool:
        """Whether it states values at so many levels that do not fall, in numbers with which an
        auction can reckon."""
        values, budget, size = self.values, self.privacy_budget, self.data_size
        return (
            values is not None
            and len(values) == levels
            and values == sorted(values)
            and values[-1] <= LARGEST_VALUE
            and budget is not None
            and SMALLEST <= budget <= LARGEST
            and size is not None
            and size <= LARGEST
        )


class OfferRequest(RoundMessage):
    """A menu: losses, what they pay, and the money that is left.

    Its `form` is a curve through these points, the points alone, or a curve for a part of her
    `records`.
    """

    type: ClassVar[str] = "query.offer"
    terms: Terms
    privacy_losses: Annotated[list[Number], pydantic.Field(min_length=1)]
    payments: Annotated[list[Number], pydantic.Field(min_length=1)]
    money: Number
    form: Literal["curve", "points", "part"]
    records: Number | None = None


class Choice(Wire):
    """What an owner takes from a menu: a loss and its payment, both 0 for nothing; and records."""

    privacy_loss: Number
    payment: Number
    records: Annotated[float, pydantic.Field(ge=1)]


class SaleRequest(RoundMessage):
    """The broker offers a payment for a gradient at this privacy loss, on so many records.

    `parameters` (D,) are the buyer's model; there are none in a market without learning.
    """

    type: ClassVar[str] = "train.sell"
    terms: Terms
    privacy_loss: Annotated[float, pydantic.Field(gt=0)]
    payment: Number
    records: Annotated[int, pydantic.Field(ge=1)]
    parameters: bytes | None = None


class SaleReply(Wire):
    """Whether the owner sells, and her perturbed gradient (D,); without learning only that she has
    delivered. One who `accepted` and does not deliver has dropped out."""

    accepted: bool
    delivered: bool
    gradient: bytes | None = None


class Settlement(Wire):
    """The run is over; with the payments that an owner has not heard of, see `BidRequest`."""

    type: ClassVar[str] = "query.settle"
    run: Text
    paid_buyers: list[Count] = []
    paid_rounds: list[Count] = []
    paid: list[Number] = []


class Receipt(Wire):
    """An owner has heard of her payments."""


def packed(vector: Floats) -> bytes:
    """A vector (D,) as it travels."""
    return np.ascontiguousarray(vector, "<f8").tobytes()


def unpacked(content: bytes, dimension: int | None = None) -> Floats:
    """The vector of a message, of finite numbers, and of this dimension if one is given."""
    if len(content) % 8 or (dimension is not None and len(content) != 8 * dimension):
        raise MessageError(f"a vector has {len(content)} bytes, which is not {dimension} numbers")
    vector = np.frombuffer(content, "<f8").astype(np.float64)
    if not np.isfinite(vector).all():
        raise MessageError("a vector has numbers that are not finite")
    return vector
