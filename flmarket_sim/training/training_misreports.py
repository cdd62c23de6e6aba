"""Misreports for training, of one owner of each market."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from flmarket_sim.auctions.learned.level_outcome import LevelOutcome, ReportTensors, outcome_of
from flmarket_sim.training.type_space import Types


class MisreportTensors(NamedTuple):
    """One owner's report in each market: values (K, M), privacy_budget (K,), data_size (K,)."""

    values: Tensor
    privacy_budget: Tensor
    data_size: Tensor


def random_misreports(
    types: Types,
    owner: Tensor,
    levels: int,
    generator: torch.Generator,
    wild: float = 0.0,
    size_lies: bool = True,
) -> MisreportTensors:
    """A random misreport of owner[k] in market k: another family or rate, a smaller budget, fewer
    records (with `size_lies`; down to a single one), distorted levels.

    A share `wild` of them raises the price from some level on by a large factor, even beyond the
    buyer's money.
    """
    family, rate, budget, size, _ = types.of_owner(owner)

    def uniform() -> Tensor:
        return torch.rand(len(owner), generator=generator)

    other = torch.randint(0, 4, (len(owner),), generator=generator).to(family.dtype)
    family = torch.where(uniform() < 0.5, family, other)
    rate = rate * torch.exp(0.7 * torch.randn(len(owner), generator=generator))
    budget = torch.where(uniform() < 0.5, budget, budget * (0.1 + 0.9 * uniform()))
    if size_lies:
        part = torch.where(uniform() < 0.5, 0.1 + 0.9 * uniform(), size ** -uniform())
        size = torch.where(uniform() < 0.7, size, (size * part).floor().clamp(min=1))
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
    return MisreportTensors(values, budget, size)


def with_misreport(
    truth: ReportTensors, owner: Tensor, misreport: MisreportTensors
) -> ReportTensors:
    """The truthful reports, with one owner's replaced in each market."""
    rows = torch.arange(len(owner))
    values, budget, size = (
        truth.values.clone(),
        truth.privacy_budget.clone(),
        truth.data_size.clone(),
    )
    values[rows, owner], budget[rows, owner], size[rows, owner] = misreport
    return truth._replace(values=values, privacy_budget=budget, data_size=size)


def misreport_utility(
    types: Types, owner: Tensor, misreport: MisreportTensors, outcome: LevelOutcome
) -> Tensor:
    """(K,) expected payment minus true value of the owner who misreports."""
    rows = torch.arange(len(owner))
    chance, payment = outcome.chance[rows, owner], outcome.payment[rows, owner]
    levels = chance.shape[-1] - 1
    loss = misreport.privacy_budget[:, None] * (torch.arange(levels + 1) / levels)
    liars = types.of_owner(owner)
    cost = liars.value(loss, misreport.data_size)
    return (chance * (payment - cost)).sum(-1)


def best_misreports(
    network: nn.Module,
    types: Types,
    truth: ReportTensors,
    owner: Tensor,
    tries: int,
    generator: torch.Generator,
    deterministic: bool,
    wild: float = 0.0,
    size_lies: bool = True,
) -> MisreportTensors:
    """The best of `tries` random misreports of one owner of each market, as deployed."""
    markets = len(owner)
    with torch.no_grad():
        many = torch.arange(markets).repeat_interleave(tries)
        wide_types = types.take(many)
        wide_owner = owner[many]
        misreports = random_misreports(
            wide_types, wide_owner, truth.values.shape[-1], generator, wild, size_lies
        )
        reports = with_misreport(
            ReportTensors(*(column[many] for column in truth)), wide_owner, misreports
        )
        outcome = outcome_of(network, reports, deterministic=deterministic)
        outcome = LevelOutcome(outcome.chance.float(), outcome.payment.float())
        utility = misreport_utility(wide_types, wide_owner, misreports, outcome).view(
            markets, tries
        )
        chosen = utility.argmax(1) + torch.arange(markets) * tries
        return MisreportTensors(*(column[chosen] for column in misreports))


def ascended_misreports(
    network: nn.Module,
    types: Types,
    truth: ReportTensors,
    owner: Tensor,
    steps: int,
    rate: float,
    deterministic: bool,
    temperature: float | None,
    *,
    size_lies: bool = False,
    per_record: bool = True,
) -> MisreportTensors:
    """The last iterate of plain gradient ascent from the truth, on values for a record, on the
    privacy budget and, with `size_lies`, on the data size.

    The ascent climbs her utility, or her utility for a record of her true size (`per_record`).
    After each step values are at least 0 and do not fall from level to level, the privacy budget is
    in [0, true] and the data size in [1, true]. `per_record` keeps values and budgets above 0. A
    slope that is not finite counts as 0.
    """
    rows = torch.arange(len(owner))
    most_records, most_loss = truth.data_size[rows, owner], truth.privacy_budget[rows, owner]
    unit = truth.values[rows, owner] / most_records[:, None]
    budget, size = most_loss.clone(), most_records.clone()
    least_value, least_budget = (1e-3, 1e-2) if per_record else (0.0, 0.0)
    for _ in range(steps):
        moving = [unit, budget, size] if size_lies else [unit, budget]
        for part in moving:
            part.requires_grad_(True)
        misreport = MisreportTensors(unit * size[:, None], budget, size)
        outcome = outcome_of(
            network,
            with_misreport(truth, owner, misreport),
            deterministic=deterministic,
            temperature=temperature,
        )
        utility = misreport_utility(types, owner, misreport, outcome)
        climbed = (utility / most_records if per_record else utility).sum()
        slopes = torch.autograd.grad(climbed, moving, allow_unused=True)
        with torch.no_grad():
            moved = [
                part if slope is None else part + rate * slope.nan_to_num(0.0, 0.0, 0.0)
                for part, slope in zip(moving, slopes, strict=True)
            ]
            unit = moved[0].clamp(min=least_value).cummax(dim=1).values.detach()
            budget = torch.minimum(moved[1].clamp(min=least_budget), most_loss).detach()
            if size_lies:
                size = torch.minimum(moved[2].clamp(min=1.0), most_records).detach()
    return MisreportTensors(unit * size[:, None], budget, size)
