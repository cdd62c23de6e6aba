"""True types of owners as tensors, drawn from a scenario, and their true values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from flmarket_sim.aggregation.market_error import COORDINATE_KAPPA
from flmarket_sim.auctions.learned.level_outcome import ReportTensors
from flmarket_sim.errors import InputError
from flmarket_sim.owners.family_table import FAMILIES, STEP, family_of
from flmarket_sim.owners.population import create_population
from flmarket_sim.owners.valuation import size_factor
from flmarket_sim.owners.valuation_family import InTorch
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Purpose, Streams
from flmarket_sim.scenario.model import Scenario

POPULATIONS = 20  # of the scenario, so that a mechanism learns the market and not one population


class Types(NamedTuple):
    """family codes, rate, privacy_budget, data_size, all (K, n); budget (K,)."""

    family: Tensor
    rate: Tensor
    privacy_budget: Tensor
    data_size: Tensor
    budget: Tensor

    def value(self, privacy_loss: Tensor, data_size: Tensor | None = None) -> Tensor:
        """True value (K, n, ...) of losses on `data_size` records (by default all), in the losses'
        shape."""
        more = privacy_loss.dim() - self.rate.dim()

        def shaped(column: Tensor) -> Tensor:
            return column.reshape(*column.shape, *([1] * more)).expand_as(privacy_loss)

        size = self.data_size if data_size is None else data_size
        return value(
            shaped(self.family),
            shaped(self.rate),
            shaped(size),
            privacy_loss,
            shaped(self.rate * self.data_size * self.privacy_budget),
        )

    def truthful(self, levels: int) -> ReportTensors:
        share = torch.arange(1, levels + 1, dtype=self.rate.dtype) / levels
        values = self.value(self.privacy_budget[..., None] * share)
        kappa = torch.full_like(self.budget, COORDINATE_KAPPA)
        columns = (self.privacy_budget, self.data_size, self.budget, kappa)
        return ReportTensors(values, *columns, torch.zeros_like(kappa))

    def of_owner(self, owner: Tensor) -> Types:
        """The types (K,) of owner[k] of market k."""
        rows = torch.arange(len(owner))
        family, rate, budget, size = (column[rows, owner] for column in self[:4])
        return Types(family, rate, budget, size, self.budget)

    def take(self, rows: Tensor) -> Types:
        return Types(*(column[rows] for column in self))


def value(family: Tensor, rate: Tensor, size: Tensor, loss: Tensor, step_cost: Tensor) -> Tensor:
    """The valuations of `valuation.py`, for tensors of one shape."""
    sells = loss > 0
    # The slope of a root at 0 is not finite.
    root = torch.where(sells, torch.where(sells, loss, 1.0).sqrt(), 0.0)
    unit = torch.stack(
        [2 * loss, loss * loss, 2 * root, torch.expm1(loss), sells.to(loss.dtype)], dim=-1
    )
    chosen = unit.gather(-1, family.long().clamp(max=STEP)[..., None])[..., 0]
    for code in plugin_families(family):
        plugin = family_of(code)
        assert isinstance(plugin, InTorch)  # see require_torch_forms
        chosen = torch.where(family == code, plugin.torch_value(loss), chosen)
        factor = size_factor(np.array(code, np.int8), size.detach().double().numpy())
        size = torch.where(family == code, torch.from_numpy(factor).to(size.dtype), size)
    return torch.where(family == STEP, chosen * step_cost, rate * size * chosen)


def plugin_families(family: Tensor) -> list[int]:
    """The codes of families from elsewhere that occur."""
    last = int(family.max()) if family.numel() else STEP
    return [code for code in range(len(FAMILIES), last + 1) if bool((family == code).any())]


def require_torch_forms(scenario: Scenario) -> None:
    """Refuses a scenario with owners whose valuation cannot be computed on tensors."""
    for name in scenario.owners.families:
        if name not in FAMILIES and not isinstance(registry.families.create(name), InTorch):
            raise InputError(
                f"nothing can be trained with owners of the valuation family {name!r}: it has no "
                "`torch_value(privacy_loss)`, its value on torch tensors. Add it, or leave the "
                "family out of owners.families"
            )


class TypeSampler:
    """Fresh profiles of a scenario's market: batch `step` depends on seed and step alone."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        require_torch_forms(scenario)
        self.bidders = scenario.market.bidders
        self.budget = scenario.budget
        self.streams = Streams(seed)
        self.populations = [
            create_population(scenario, Streams(seed * 1000 + k)) for k in range(POPULATIONS)
        ]

    def draw(self, step: int, markets: int) -> Types:
        rng = self.streams.generator(Purpose.PROFILES, step)
        people = self.populations[int(rng.integers(len(self.populations)))]
        scores = rng.random((markets, len(people)))
        chosen = np.argpartition(scores, self.bidders - 1, axis=1)[:, : self.bidders]
        truth = people.profiles(chosen)
        low, high = self.budget.factor or self.budget.amount or (0.0, 0.0)
        money = rng.uniform(low, high, markets)
        if self.budget.factor is not None:
            money = money * truth.total_value()
        columns = (truth.family, truth.rate, truth.privacy_budget, truth.data_size, money)
        return Types(*(torch.from_numpy(np.asarray(column, np.float32)) for column in columns))
