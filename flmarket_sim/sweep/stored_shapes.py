"""What the files of a sweep hold, by their types: a damaged file is refused before it is used."""

from __future__ import annotations

from typing import Any

import pydantic

from flmarket_sim.eventlog.totals import TOTALS

_FIELDS: dict[str, Any] = {name: (kind | None, None) for name, kind in TOTALS.items()}
BuyerTotals = pydantic.create_model("BuyerTotals", **_FIELDS)


class RunResult(pydantic.BaseModel):
    """A result in `tasks.jsonl`: the wall seconds of a run, and the totals of each buyer."""

    seconds: float
    totals: dict[str, BuyerTotals]


class SweepFacts(pydantic.BaseModel):
    """`sweep.json`. Versions differ in what they write, so that anything may be missing."""

    name: str = ""
    sha256: str = ""
    runs: int = 0
    axes: list[str] = []
    seeds: list[int] = []
    versions: dict[str, Any] = {}
    scenario: dict[str, Any] = {}
    file: str = ""
