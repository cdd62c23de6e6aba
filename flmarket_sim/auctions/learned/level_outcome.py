"""From a network's output to an outcome: the chance and payment of every level."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from flmarket_sim.auctions.learned.menu_network import MenuNetwork, Menus
from flmarket_sim.auctions.learned.paper_network import PaperNetwork


class ReportTensors(NamedTuple):
    """A network's input: values (K, n, M) in money, budgets and sizes (K, n), the others (K,).

    budget   the buyer's money
    kappa    the regime of the market, which menus depend on
    by_size  1 where weights are in proportion to sizes (convl-aggr), 0 where they are optimal

    The paper's networks do not read the last two.
    """

    values: Tensor
    privacy_budget: Tensor
    data_size: Tensor
    budget: Tensor
    kappa: Tensor
    by_size: Tensor


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
        if deterministic:
            return _of_menus(network(*reports), reports, temperature)
        return _of_lots(network, reports)
    assert isinstance(network, PaperNetwork)
    allocation, payment = network(*(report.float() for report in reports[:4]))
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


def _of_lots(network: MenuNetwork, reports: ReportTensors) -> LevelOutcome:
    """The mean over both sides of the coin: chances, and payments given the level."""
    markets = len(reports.budget)
    sides = [
        _of_menus(network(*reports, None, torch.full((markets,), upwards)), reports, None)
        for upwards in (False, True)
    ]
    chance = (sides[0].chance + sides[1].chance) / 2
    paid = (sides[0].chance * sides[0].payment + sides[1].chance * sides[1].payment) / 2
    offered = (sides[0].payment + sides[1].payment) / 2
    taken = chance > 0
    return LevelOutcome(chance, torch.where(taken, paid / torch.where(taken, chance, 1.0), offered))


def _of_menus(menus: Menus, reports: ReportTensors, temperature: float | None) -> LevelOutcome:
    """The favourites, or soft choices from the same menus."""
    payment = nn.functional.pad(menus.payment, (1, 0))
    if temperature is None:
        chance = nn.functional.one_hot(menus.level, payment.shape[-1]).to(torch.float32)
        return LevelOutcome(chance, payment)
    utility = payment - nn.functional.pad(reports.values, (1, 0))
    scale = payment[..., -1:].detach().clamp(min=1e-9)
    return LevelOutcome(torch.softmax(utility / scale / temperature, dim=-1), payment)
