"""A gradient from fewer records than were sold."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from flmarket_sim.strategy.cheats.cheat import Floats, Plan, SaleView


class FewerRecords:
    """Trains on a share of the records that she sold, at least on one: the others stay private."""

    name = "fewer-records"

    def __init__(self, share: Annotated[float, Field(gt=0, lt=1)] = 0.1) -> None:
        self.share = share

    def plan(self, view: SaleView) -> Plan:
        return Plan(records=np.maximum(1.0, np.floor(view.records * self.share)))

    def updates(self, view: SaleView, updates: Floats) -> Floats:
        return updates
