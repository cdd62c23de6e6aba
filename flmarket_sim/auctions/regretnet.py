"""The learned auctions of the paper: RegretNet, M-RegretNet, DM-RegretNet (section V). Trained elsewhere, decided here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np

from flmarket_sim.auctions.contract import Floats, Outcome, check_budget
from flmarket_sim.bids import BidBatch
from flmarket_sim.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

    from flmarket_sim.mechanism_design.checkpoints import Learned

CHUNK = 1024  # markets in one pass of the network


class _LearnedAuction:
    """What the three share. `expected` gives the mean outcome, `decide` one draw of it."""

    name = ""
    guarantees = {"truthful": "none", "individually_rational": "none", "budget_feasible": "any"}

    def __init__(self, weights: str = "paper-iid", rule: Literal["opt-aggr", "convl-aggr"] = "opt-aggr") -> None:
        from flmarket_sim.mechanism_design import checkpoints

        self.learned: Learned = checkpoints.load(weights, self.name, rule)

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        """One draw; deterministic auctions draw nothing."""
        lots = None if self.learned.deterministic else rng.random(bids.shape)
        loss, paid = np.empty(bids.shape), np.empty(bids.shape)
        for rows, chance, payment in self._chunks(bids, budget):
            if lots is None:
                level = chance.argmax(-1)
            else:
                level = (torch_from(lots[rows])[..., None] >= chance.cumsum(-1)).sum(-1).clamp(max=chance.shape[-1] - 1)
            loss[rows] = level.numpy() / (chance.shape[-1] - 1)
            paid[rows] = payment.gather(-1, level[..., None])[..., 0].numpy()
        return Outcome(bids.privacy_budget * loss, paid)

    def expected(self, bids: BidBatch, budget: Floats) -> tuple[Floats, Floats]:
        """(K, n, M + 1) chance and payment of every level, "nothing" first."""
        parts = [(chance.double().numpy(), payment.double().numpy()) for _, chance, payment in self._chunks(bids, budget)]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def _chunks(self, bids: BidBatch, budget: Floats) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Chances and payments, some thousand markets at a time."""
        import torch

        from flmarket_sim.mechanism_design.level_outcome import Reports, outcome_of

        money = check_budget(bids, budget)
        network, learned = self.learned.network, self.learned
        n = int(network.n)  # type: ignore[arg-type]
        if n and bids.shape[1] != n:
            raise InputError(f"auction {self.name!r}: these weights were trained for {n} bidders, not for {bids.shape[1]}")
        values = bids.at_levels(int(network.levels))  # type: ignore[arg-type]
        with torch.inference_mode():
            for begin in range(0, len(values), CHUNK):
                rows = slice(begin, begin + CHUNK)
                arrays = (values[rows], bids.privacy_budget[rows], bids.data_size[rows], money[rows])
                reports = Reports(*(torch_from(array) for array in arrays))
                found = outcome_of(network, reports, deterministic=learned.deterministic, keeps_zero=learned.keeps_zero)
                yield rows, found.chance, found.payment


def torch_from(array: Floats) -> Tensor:
    import torch

    return torch.from_numpy(np.ascontiguousarray(array))


class RegretNet(_LearnedAuction):
    """RegretNet, budget-feasible: sells a whole privacy budget or nothing, by lot (M = 1)."""

    name = "regretnet"


class MRegretNet(_LearnedAuction):
    """M-RegretNet: sells one of M shares of a privacy budget, by lot."""

    name = "m-regretnet"


class DMRegretNet(_LearnedAuction):
    """DM-RegretNet: sells one of M shares of a privacy budget, no lot."""

    name = "dm-regretnet"
