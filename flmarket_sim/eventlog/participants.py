"""Naming a participant of a run on the command line: broker, buyer, buyer:NAME, owner:17."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import InputError
from flmarket_sim.eventlog.record import Role
from flmarket_sim.eventlog.schema import BROKER, buyer_id


@dataclass(frozen=True)
class Participant:
    """A role, and the number by which the log calls who has it. `owners` is how many there are: an owner's further names
    are her number plus multiples of it."""

    role: Role
    number: int
    owners: int

    def is_in(self, column: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Where a column of senders or receivers names her."""
        if self.role == Role.OWNER:
            return np.asarray((column >= 0) & (column % self.owners == self.number))
        return np.asarray(column == self.number)


def parse_participant(text: str, buyers: list[str], owners: int) -> Participant:
    """Raises InputError with what is allowed in this market."""
    role, colon, name = text.partition(":")
    if text == Role.BROKER:
        return Participant(Role.BROKER, BROKER, owners)
    if role == Role.BUYER:
        if not colon and len(buyers) == 1:
            return Participant(Role.BUYER, buyer_id(0), owners)
        if name in buyers:
            return Participant(Role.BUYER, buyer_id(buyers.index(name)), owners)
        asked = f"there is no buyer {name!r}" if colon else "there are several buyers"
        raise InputError(
            f"{asked}; choose one of {', '.join(f'buyer:{known}' for known in buyers)}"
        )
    if role == Role.OWNER and name.isascii() and name.isdecimal() and int(name) < owners:
        return Participant(Role.OWNER, int(name), owners)
    raise InputError(
        f"there is no participant {text!r}; choose broker, buyer (or buyer:NAME), or owner:0 to owner:{owners - 1}"
    )
