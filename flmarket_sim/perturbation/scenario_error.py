"""The error that a scenario's market counts.

It is of whole gradients under the scenario's perturbation, or the paper's reading: the variance of
one coordinate (docs/theory.md, section 7).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from flmarket_sim.aggregation.market_error import MarketError, coordinate_error
from flmarket_sim.learning.model_dimension import model_dimension
from flmarket_sim.perturbation.perturbation import vector_error
from flmarket_sim.plugins import registry
from flmarket_sim.scenario.model import ResolvedBuyer, Scenario

COORDINATE = "coordinate"


@dataclass(frozen=True)
class ErrorSettings:
    """Everything that the error of a market depends on, as plain data for tasks and keys.

    kind                    "vector" or "coordinate"
    clip                    the scenario's threshold for gradients
    perturbation, options   name and options of the perturbation; empty for "coordinate"
    dimension               the number of coordinates of a gradient; 1 for "coordinate"
    """

    kind: str
    clip: float
    perturbation: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    dimension: int = 1

    def error(self) -> MarketError:
        if self.kind == COORDINATE:
            return coordinate_error(self.clip)
        perturbation = registry.perturbations.create(self.perturbation, **self.options)
        return vector_error(perturbation, self.dimension, self.clip)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def sentence(self) -> str:
        """What was counted, for people."""
        kappa = self.error().kappa
        if self.kind == COORDINATE:
            return (
                "error: coordinate, the paper's reading (the variance of one coordinate beside "
                f"the bias of the whole gradient); kappa = {kappa:.4g}"
            )
        return (
            f"error: vector, the squared error of whole gradients of {self.dimension:,} "
            f"coordinates under {self.perturbation}; kappa = {kappa:.4g}"
        )


def error_settings(
    scenario: Scenario, buyer: ResolvedBuyer | None = None, dimension: int | None = None
) -> ErrorSettings:
    """What the error of a buyer's market depends on; arguments as for `scenario_error`."""
    who = buyer or scenario.resolved_buyers()[0]
    clip = scenario.privacy.clip
    if who.aggregation.error == COORDINATE:
        return ErrorSettings(COORDINATE, clip)
    coordinates = model_dimension(scenario, who) if dimension is None else dimension
    table = who.perturbation
    return ErrorSettings("vector", clip, table.name, table.options, coordinates)


def scenario_error(
    scenario: Scenario, buyer: ResolvedBuyer | None = None, dimension: int | None = None
) -> MarketError:
    """The error that the market of a buyer counts; None is the scenario's first buyer.

    `dimension` is the number of coordinates of her gradients. Without it her model is built, for
    data whose shape is known or that are loaded.
    """
    return error_settings(scenario, buyer, dimension).error()
