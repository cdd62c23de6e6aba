"""Participants of a run as the command line names them: broker, buyer, buyer:NAME, owner:17."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import InputError
from flmarket_sim.eventlog.record import Role
from flmarket_sim.eventlog.schema import BROKER, buyer_id


@dataclass(frozen=True)
class Participant:
    """The role of a participant, and her number in the log.

    `owners` is the number of owners: the further names of an owner are her number plus its
    multiples.
    """

    role: Role
    number: int
    owners: int

    def is_in(self, column: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Where a column of senders or receivers has this participant."""
        if self.role == Role.OWNER:
            return np.asarray((column >= 0) & (column % self.owners == self.number))
        return np.asarray(column == self.number)


def parse_participant(text: str, buyers: list[str], owners: int) -> Participant:
    """The participant that a text names; InputError says which ones this market has."""
    role, colon, name = text.partition(":")
    if text == Role.BROKER:
        return Participant(Role.BROKER, BROKER, owners)
    if role == Role.BUYER:
        if not colon and len(buyers) == 1:
            return Participant(Role.BUYER, buyer_id(0), owners)
        if name in buyers:
            return Participant(Role.BUYER, buyer_id(buyers.index(name)), owners)
        problem = f"there is no buyer {name!r}" if colon else "there are several buyers"
        raise InputError(
            f"{problem}; choose one of {', '.join(f'buyer:{buyer}' for buyer in buyers)}"
        )
    if role == Role.OWNER and name.isascii() and name.isdecimal() and int(name) < owners:
        return Participant(Role.OWNER, int(name), owners)
    raise InputError(
        f"there is no participant {text!r}; choose broker, buyer (or buyer:NAME), "
        f"or owner:0 to owner:{owners - 1}"
    )
