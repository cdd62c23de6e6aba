"""The table [contribution]: what sellers contributed, and whether it pays."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from flmarket_sim.scenario.part import Plugin


class Contribution(Plugin):
    """What each seller contributed to a round, for the log, and for payments if these are to
    follow."""

    name: str = Field("shapley", min_length=1)
    value: Literal["error-bound", "validation-loss"] = Field(
        "error-bound",
        description="what a coalition of sellers is worth: minus the error bound of its purchase, "
        "or minus the validation loss of the model after a step with its messages",
    )
    pays: Literal["nothing", "auction", "budget"] = Field(
        "nothing",
        description="what is divided by positive contributions in place of the auction's payments: "
        "the money that the auction pays the same sellers, or the whole budget of the round; "
        "'nothing': contributions are logged, and the auction pays",
    )
    records: int = Field(
        500, ge=1, description="test records, drawn once a buyer, that judge the validation loss"
    )
