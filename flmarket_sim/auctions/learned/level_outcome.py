"""From a network's output to an outcome: the chance and payment of every level."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from flmarket_sim.auctions.learned.menu_network import MenuNetwork
from flmarket_sim.auctions.learned.paper_network import PaperNetwork


class ReportTensors(NamedTuple):
    """A network's input: values (K, n, M) in money, budgets and sizes (K, n), money (K,)."""

    values: Tensor
    privacy_budget: Tensor
    data_size: Tensor
    budget: Tensor


class LevelOutcome(NamedTuple):
    """Chance of each level, and its payment, both (K, n, M + 1) with level 0 ("nothing") first."""

    chance: Tensor
    payment: Tensor


def outcome_of(
    network: nn.Module,
    reports: ReportTensors,
    *,
    deterministic: bool,
    keeps_zero: bool = True,
    temperature: float | None = None,
) -> LevelOutcome:
    """The deployed outcome or, with a `temperature`, its smooth stand-in for training (a soft
    argmax; paper, section V)."""
    if isinstance(network, MenuNetwork):
        reports = within_means(reports)
        menu = network(*(report.float() for report in reports))
        if (
            temperature is None
        ):  # deployed: in double precision, so that rounding neither overspends nor underpays
            menu = menu.double()
            menu = (
                menu
                * (reports.budget.double() / menu[..., -1].sum(1)).clamp(max=1.0)[:, None, None]
            )
        return _favourite(menu, reports.values.to(menu.dtype), temperature)
    assert isinstance(network, PaperNetwork)
    allocation, payment = network(*(report.float() for report in reports))
    chance = torch.softmax(allocation, dim=-1).roll(1, dims=-1)
    if deterministic:
        if not keeps_zero:
            chance = torch.cat([torch.full_like(chance[..., :1], -1.0), chance[..., 1:]], dim=-1)
        if temperature is None:
            chance = nn.functional.one_hot(chance.argmax(-1), chance.shape[-1]).to(chance.dtype)
        else:
            chance = torch.softmax(chance / temperature, dim=-1)
    fraction = torch.softmax(payment.double(), dim=-1)[:, :-1]
    money = (fraction * reports.budget[:, None].double()).to(
        allocation.dtype if temperature else torch.float64
    )
    return LevelOutcome(chance, money[..., None].expand(-1, -1, chance.shape[-1]))


def within_means(reports: ReportTensors) -> ReportTensors:
    """Cuts values at the buyer's budget, which keeps menus within the range of the training."""
    return reports._replace(values=torch.minimum(reports.values, reports.budget[:, None, None]))


def _favourite(menu: Tensor, values: Tensor, temperature: float | None) -> LevelOutcome:
    """Each owner's best level of her menu by her own report; ties go to the larger sale."""
    payment = torch.cat([torch.zeros_like(menu[..., :1]), menu], dim=-1)
    utility = payment - torch.cat([torch.zeros_like(values[..., :1]), values], dim=-1)
    if temperature is None:
        best = utility.shape[-1] - 1 - utility.flip(-1).argmax(-1)
        chance = torch.zeros(utility.shape, dtype=torch.float32).scatter_(-1, best[..., None], 1.0)
        return LevelOutcome(chance, payment)
    scale = payment[..., -1:].detach().clamp(min=1e-9)
    return LevelOutcome(torch.softmax(utility / scale / temperature, dim=-1), payment)
