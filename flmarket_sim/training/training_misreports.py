"""Lies for training: what one owner of each market could report instead of the truth."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from flmarket_sim.auctions.learned.level_outcome import LevelOutcome, ReportTensors, outcome_of
from flmarket_sim.training.type_space import Types


class Lie(NamedTuple):
    """One owner's report in each market: values (K, M), privacy_budget (K,), data_size (K,)."""

    values: Tensor
    privacy_budget: Tensor
    data_size: Tensor


def random_lies(
    types: Types, owner: Tensor, levels: int, generator: torch.Generator, wild: float = 0.0
) -> Lie:
    """A structured lie for owner[k] of market k: another family or rate, a smaller budget, fewer
    records, crooked levels.

    A share `wild` of them goes far: from some level on the price is raised, beyond all money if
    need be.
    """
    family, rate, budget, size, _ = types.of_owner(owner)

    def uniform() -> Tensor:
        return torch.rand(len(owner), generator=generator)

    other = torch.randint(0, 4, (len(owner),), generator=generator).to(family.dtype)
    family = torch.where(uniform() < 0.5, family, other)
    rate = rate * torch.exp(0.7 * torch.randn(len(owner), generator=generator))
    budget = torch.where(uniform() < 0.5, budget, budget * (0.1 + 0.9 * uniform()))
    size = torch.where(uniform() < 0.7, size, (size * (0.1 + 0.9 * uniform())).floor().clamp(min=1))
    values = Types(family, rate, budget, size, types.budget).truthful(levels).values
    crooked = torch.exp(0.5 * torch.randn(values.shape, generator=generator))
    values = torch.where(
        (uniform() < 0.25)[:, None], (values * crooked).cummax(dim=1).values, values
    )
    if wild > 0.0:
        far = torch.exp(math.log(2.0) + math.log(5e5) * uniform())[:, None]
        above = (
            torch.arange(levels)
            >= torch.randint(0, levels, (len(owner),), generator=generator)[:, None]
        )
        values = torch.where(
            (uniform() < wild)[:, None], torch.where(above, values * far, values), values
        )
    return Lie(values, budget, size)


def told(truth: ReportTensors, owner: Tensor, lie: Lie) -> ReportTensors:
    """The truthful reports with one owner's replaced in each market."""
    rows = torch.arange(len(owner))
    values, budget, size = (
        truth.values.clone(),
        truth.privacy_budget.clone(),
        truth.data_size.clone(),
    )
    values[rows, owner], budget[rows, owner], size[rows, owner] = lie
    return ReportTensors(values, budget, size, truth.budget)


def utility_of_lie(types: Types, owner: Tensor, lie: Lie, outcome: LevelOutcome) -> Tensor:
    """(K,) expected payment minus true value for the lying owner."""
    rows = torch.arange(len(owner))
    chance, payment = outcome.chance[rows, owner], outcome.payment[rows, owner]
    levels = chance.shape[-1] - 1
    loss = lie.privacy_budget[:, None] * (torch.arange(levels + 1) / levels)
    liars = types.of_owner(owner)
    cost = liars.value(loss, lie.data_size)
    return (chance * (payment - cost)).sum(-1)


def best_lies(
    network: nn.Module,
    types: Types,
    truth: ReportTensors,
    owner: Tensor,
    tries: int,
    generator: torch.Generator,
    deterministic: bool,
    wild: float = 0.0,
) -> Lie:
    """The best of `tries` random lies for one owner of each market, judged on the mechanism as
    deployed."""
    markets = len(owner)
    with torch.no_grad():
        many = torch.arange(markets).repeat_interleave(tries)
        wide_types = types.take(many)
        wide_owner = owner[many]
        lies = random_lies(wide_types, wide_owner, truth.values.shape[-1], generator, wild)
        reports = told(ReportTensors(*(column[many] for column in truth)), wide_owner, lies)
        outcome = outcome_of(network, reports, deterministic=deterministic)
        outcome = LevelOutcome(outcome.chance.float(), outcome.payment.float())
        utility = utility_of_lie(wide_types, wide_owner, lies, outcome).view(markets, tries)
        chosen = utility.argmax(1) + torch.arange(markets) * tries
        return Lie(*(column[chosen] for column in lies))


def ascended_lies(
    network: nn.Module,
    types: Types,
    truth: ReportTensors,
    owner: Tensor,
    steps: int,
    rate: float,
    deterministic: bool,
    temperature: float | None,
) -> Lie:
    """The paper's attack: plain gradient ascent on values per record and privacy budget, from the
    truth, last iterate."""
    rows = torch.arange(len(owner))
    size = truth.data_size[rows, owner]
    unit = (truth.values[rows, owner] / size[:, None]).clone()
    budget = truth.privacy_budget[rows, owner].clone()
    most = budget.clone()
    for _ in range(steps):
        unit.requires_grad_(True)
        budget.requires_grad_(True)
        lie = Lie(unit * size[:, None], budget, size)
        outcome = outcome_of(
            network, told(truth, owner, lie), deterministic=deterministic, temperature=temperature
        )
        utility = (utility_of_lie(types, owner, lie, outcome) / size).sum()
        slopes = torch.autograd.grad(utility, (unit, budget), allow_unused=True)
        with torch.no_grad():
            moved = unit if slopes[0] is None else unit + rate * slopes[0]
            unit = moved.clamp(min=1e-3).cummax(dim=1).values.detach()
            shifted = budget if slopes[1] is None else budget + rate * slopes[1]
            budget = torch.minimum(shifted.clamp(min=1e-2), most).detach()
    return Lie(unit * size[:, None], budget, size)
