"""One owner behind several names."""

from __future__ import annotations

import hashlib
import struct
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from flmarket_sim.strategy.behaviours.behaviour import BehaviourReports, CohortView

Names = Annotated[int, Field(ge=2, le=16)]
Disguise = Annotated[float, Field(ge=0.0, le=0.5)]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class FalseNames:
    """Appears as `identities` owners who split her records evenly.

    The parts are different records, so each may sell up to her whole privacy budget. A step owner
    asks for each part its share of her cost of selling anything. An owner with fewer records than
    names uses fewer names. Her first name reports her true values. Names that reported the same
    privacy budget or the same price for a record would show that they are one person's, so each
    further name reports a budget that is smaller by up to `disguise` of it, and asks for as much
    more; which, follows from her secret rate, and is the same in every round.
    """

    name = "false-names"

    def __init__(self, identities: Names = 2, disguise: Disguise = 0.02) -> None:
        self.identities, self.disguise = identities, disguise

    def report(self, view: CohortView) -> BehaviourReports:
        total = view.data_size.astype(np.int64)
        names = np.minimum(self.identities, total)
        of = np.repeat(np.arange(len(total)), names)
        place = np.arange(len(of)) - np.repeat(np.cumsum(names) - names, names)
        size = (total // names)[of] + (place < (total % names)[of])
        truth = view.truth.types.at((0, of))
        less, more = self.disguise * _lots(view, of, place)
        parts = truth._replace(
            rate=truth.rate * ((1.0 + more) / (1.0 - less)),
            privacy_budget=view.privacy_budget[of] * (1.0 - less),
            data_size=size.astype(float),
        )
        values = parts.table(view.levels)
        return BehaviourReports(
            values, parts.privacy_budget, parts.data_size, of, parts.family, parts.rate
        )


def _lots(view: CohortView, of: Ints, place: Ints) -> Floats:
    """(2, r) numbers from [0, 1), two for each further name of an owner and 0 for her first.

    They follow from what only she knows, and not from the round.
    """
    owners = view.owners[of]
    rate = view.population.types(owners).rate
    lots = np.zeros((2, len(place)))
    for row in np.flatnonzero(place).tolist():
        secret = struct.pack("<dqq", rate[row], int(owners[row]), int(place[row]))
        drawn = struct.unpack("<LL", hashlib.sha256(secret).digest()[:8])
        lots[:, row] = np.array(drawn, float) / 2.0**32
    return lots
