"""Misreports by gradient ascent, for auctions that are `Differentiable`.

The ascent varies the values of the liar's table; budget and size stay as other stages left them.
Its reports are scored on the deployed auction like all other candidates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flmarket_sim.strategy.misreports import Liars, Misreports
from flmarket_sim.strategy.payoff import Payoff

MARKETS = 4096  # in one pass
ITERATES = 5  # of an ascent, to be scored


def ascended(
    auction: Any, payoff: Payoff, liars: Liars, start: Misreports, steps: int
) -> Misreports:
    """Iterates (ITERATES, G, ...) of Adam on the liar's expected true utility, from the reports
    `start` (G, ...)."""
    parts = []
    per_call = max(1, MARKETS // payoff.samples)
    for begin in range(0, len(liars), per_call):
        rows = np.arange(begin, min(begin + per_call, len(liars)))
        parts.append(_ascend(auction, payoff, liars, start, rows, steps))
    values = np.concatenate(parts, axis=1)
    budget, size = (
        np.broadcast_to(column, values.shape[:2])
        for column in (start.privacy_budget, start.data_size)
    )
    return liars.feasible(Misreports(values, budget, size))


def _ascend(
    auction: Any, payoff: Payoff, liars: Liars, start: Misreports, rows: Any, steps: int
) -> Any:
    import torch

    samples = payoff.samples
    markets = (rows[:, None] * samples + np.arange(samples)).ravel()
    liar = torch.from_numpy(np.repeat(payoff.owner[rows], samples))
    place = torch.arange(len(markets))
    values, budget, size = (
        torch.from_numpy(np.array(column[markets], np.float32))
        for column in (
            payoff.reported.values,
            payoff.reported.privacy_budget,
            payoff.reported.data_size,
        )
    )
    money = torch.from_numpy(payoff.budget[markets].astype(np.float32))
    reports = start.at(rows)
    budget[place, liar] = torch.from_numpy(
        np.repeat(reports.privacy_budget, samples).astype(np.float32)
    )
    size[place, liar] = torch.from_numpy(np.repeat(reports.data_size, samples).astype(np.float32))
    steps_up = np.maximum(
        np.diff(reports.values, axis=1, prepend=0.0), 1e-4 * reports.values[:, -1:] + 1e-9
    )
    height = torch.from_numpy(np.log(steps_up).astype(np.float32)).requires_grad_(True)
    optimiser = torch.optim.Adam([height], lr=0.1)
    tables: list[Any] = []
    scale = torch.from_numpy(np.maximum(liars.truth().values[rows, -1], 1e-9).astype(np.float32))
    cost = None
    for step in range(steps):
        table = height.exp().cumsum(1).repeat_interleave(samples, 0)
        everybody = values.index_put((place, liar), table)
        chance, payment = auction.relaxed(everybody, budget, size, money)
        chance, payment = chance[place, liar].float(), payment[place, liar].float()
        if cost is None:
            cost = _costs(payoff, markets, reports, samples, chance.shape[1] - 1)
        utility = (chance * (payment - cost)).sum(-1).reshape(-1, samples).mean(1) / scale
        optimiser.zero_grad()
        torch.autograd.backward(-utility.sum())
        if height.grad is not None:
            height.grad.nan_to_num_()
        optimiser.step()
        if (step + 1) % max(1, steps // ITERATES) == 0 and len(tables) < ITERATES:
            tables.append(height.detach().double().exp().cumsum(1).numpy())
    while len(tables) < ITERATES:
        tables.append(tables[-1])
    return np.stack(tables)


def _costs(payoff: Payoff, markets: Any, reports: Misreports, samples: int, levels: int) -> Any:
    """(K, M + 1) true value to the liar of every level of her reported budget."""
    import torch

    liar = np.repeat(payoff.owner[markets[::samples] // samples], samples)[:, None]
    loss = np.repeat(reports.privacy_budget, samples)[:, None] * (np.arange(levels + 1) / levels)
    types = payoff.truth.types.at((markets[:, None], liar))
    value = types.value(loss, np.repeat(reports.data_size, samples)[:, None])
    return torch.from_numpy(value.astype(np.float32))
