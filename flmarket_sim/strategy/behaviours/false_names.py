"""One owner behind several names."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from flmarket_sim.strategy.behaviours.behaviour import BehaviourReports, CohortView

Names = Annotated[int, Field(ge=2, le=16)]


class FalseNames:
    """Appears as `identities` owners who split her records evenly, each with her true values.

    The parts are different records, so each may sell up to her whole privacy budget. A step owner
    asks for each part its share of her cost of selling anything. An owner with fewer records than
    names uses fewer names.
    """

    name = "false-names"

    def __init__(self, identities: Names = 2) -> None:
        self.identities = identities

    def report(self, view: CohortView) -> BehaviourReports:
        total = view.data_size.astype(np.int64)
        names = np.minimum(self.identities, total)
        of = np.repeat(np.arange(len(total)), names)
        place = np.arange(len(of)) - np.repeat(np.cumsum(names) - names, names)
        size = (total // names)[of] + (place < (total % names)[of])
        parts = view.truth.types.at((0, of))._replace(
            privacy_budget=view.privacy_budget[of], data_size=size.astype(float)
        )
        values = parts.table(view.levels)
        return BehaviourReports(
            values, parts.privacy_budget, parts.data_size, of, parts.family, parts.rate
        )
