"""The table [sweep] of a scenario file: axes and seeds."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from flmarket_sim.scenario.part import Part


def _seeds(value: Any) -> Any:
    def whole(number: Any, least: int) -> bool:
        return isinstance(number, int) and not isinstance(number, bool) and least <= number < 2**63

    if whole(value, 1):
        return value
    if (
        isinstance(value, list)
        and value
        and all(whole(seed, 0) for seed in value)
        and len(set(value)) == len(value)
    ):
        return value
    raise ValueError("a number of seeds of at least 1, or a list of different seeds of at least 0")


_SEEDS_SCHEMA = {
    "anyOf": [
        {"type": "integer", "minimum": 1},
        {
            "type": "array",
            "items": {"type": "integer", "minimum": 0},
            "minItems": 1,
            "uniqueItems": True,
        },
    ]
}
_AXES_SCHEMA = {
    "type": "object",
    "additionalProperties": {"type": ["array", "object"]},
    "default": {},
}
Seeds = Annotated[Any, BeforeValidator(_seeds), WithJsonSchema(_SEEDS_SCHEMA | {"default": 1})]
Axes = Annotated[dict[str, Any], WithJsonSchema(_AXES_SCHEMA)]


class Sweep(Part):
    """Many runs of one scenario, for `flmarket sweep`. An axis is a dotted path with its values."""

    seeds: Seeds = Field(
        1,
        description="how many, counted from the scenario's seed, or a list; "
        "the same for every combination",
    )
    keep_events: bool = Field(False, description="keep the event log of every run under runs/ID")
    grid: Axes = Field({}, description="every combination of these values")
    zip: Axes = Field({}, description="these lists side by side, all of one length")
