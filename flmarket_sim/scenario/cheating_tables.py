"""The tables of a scenario about cheats after the sale: who cheats, and what the broker does."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from flmarket_sim.scenario.part import Plugin, Probability


class CheatShare(Plugin):
    """A share of the owners, what they do after a sale from some round on, and its options."""

    share: Probability = Field(description="of the owners that `among` names, together with others")
    among: Literal["all", "with behaviour", "without behaviour"] = Field(
        "all", description="whom the share is of: by [[owners.behaviours]]"
    )
    from_round: int = Field(0, ge=0, description="before this round of a buyer they are honest")


Consequence = Literal[
    "no-payment", "partial-payment", "discard", "deposit", "exclusion", "reputation"
]


class CheckTable(Plugin):
    """What the broker tests messages by, and what follows for the owners whom she accuses."""

    level: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="a message is accused if an honest one looked as suspicious with at most this "
        "chance: the largest share of honest messages that is accused, if honest gradients are "
        "as the check assumes (docs/writing-a-check.md)",
    )
    consequences: Annotated[
        tuple[Consequence, ...], BeforeValidator(lambda v: tuple(v) if isinstance(v, list) else v)
    ] = Field(
        ("no-payment",),
        description="no-payment; partial-payment: p / level of it; discard: her message is not "
        "aggregated; deposit: she loses it to the buyer; exclusion: her next bids do not count; "
        "reputation: her bids look dearer. None: verdicts are only logged",
    )
    deposit: float = Field(
        1.0, gt=0, le=1e3, description="what `deposit` takes, in payments of the sale"
    )
    exclusion: int = Field(
        10, ge=1, le=10**7, description="rounds of the buyer for which `exclusion` lasts"
    )
    memory: float = Field(
        0.3,
        gt=0,
        le=1,
        description="the weight of the latest verdict in a reputation, which is a moving mean of "
        "not being accused",
    )
    least_reputation: float = Field(0.1, gt=0, le=1, description="no reputation falls below it")
    history: int = Field(
        5, ge=0, le=100, description="earlier rounds whose messages the broker keeps for the check"
    )
    reference: int | None = Field(
        None,
        ge=1,
        le=10**6,
        description="training records of which the broker has copies, for checks that compare "
        "with a gradient of her own; none: she has no such gradient",
    )
