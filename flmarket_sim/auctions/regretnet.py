"""The learned auctions of the paper: RegretNet, M-RegretNet, DM-RegretNet (section V). Trained elsewhere, decided here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from flmarket_sim.auctions.contract import Floats, Outcome, check_budget
from flmarket_sim.bids import BidBatch
from flmarket_sim.errors import InputError

if TYPE_CHECKING:
    from flmarket_sim.mechanism_design.checkpoints import Learned

CHUNK = 8192  # markets in one pass of the network


class _LearnedAuction:
    """What the three share. `expected` gives the mean outcome, `decide` one draw of it."""

    name = ""
    guarantees = {"truthful": "none", "individually_rational": "none", "budget_feasible": "any"}

    def __init__(self, weights: str = "paper-iid", rule: Literal["opt-aggr", "convl-aggr"] = "opt-aggr") -> None:
        from flmarket_sim.mechanism_design import checkpoints

        self.learned: Learned = checkpoints.load(weights, self.name, rule)

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        chance, payment = self._levels(bids, budget)
        if self.learned.deterministic:
            level = chance.argmax(axis=2)
        else:
            level = (rng.random(bids.shape)[..., None] >= np.cumsum(chance, axis=2)).sum(axis=2)
            level = np.minimum(level, chance.shape[2] - 1)
        paid = np.take_along_axis(payment, level[..., None], axis=2)[..., 0]
        return Outcome(bids.privacy_budget * (level / (chance.shape[2] - 1)), paid)

    def expected(self, bids: BidBatch, budget: Floats) -> tuple[Floats, Floats]:
        """(K, n, M + 1) chance and payment of every level, "nothing" first."""
        return self._levels(bids, budget)

    def _levels(self, bids: BidBatch, budget: Floats) -> tuple[Floats, Floats]:
        import torch

        from flmarket_sim.mechanism_design.level_outcome import Reports, outcome_of

        money = check_budget(bids, budget)
        network, learned = self.learned.network, self.learned
        n = int(network.n)  # type: ignore[arg-type]
        if n and bids.shape[1] != n:
            raise InputError(f"auction {self.name!r}: these weights were trained for {n} bidders, not for {bids.shape[1]}")
        values = bids.at_levels(int(network.levels))  # type: ignore[arg-type]
        parts: list[tuple[Floats, Floats]] = []
        with torch.inference_mode():
            for begin in range(0, len(values), CHUNK):
                rows = slice(begin, begin + CHUNK)
                arrays = (values[rows], bids.privacy_budget[rows], bids.data_size[rows], money[rows])
                reports = Reports(*(torch.from_numpy(np.ascontiguousarray(a)) for a in arrays))
                found = outcome_of(network, reports, deterministic=learned.deterministic, keeps_zero=learned.keeps_zero)
                parts.append((found.chance.numpy(), found.payment.numpy()))
        chance, payment = (np.concatenate(column).astype(np.float64) for column in zip(*parts, strict=True))
        return chance, payment


class RegretNet(_LearnedAuction):
    """RegretNet, budget-feasible: sells a whole privacy budget or nothing, by lot (M = 1)."""

    name = "regretnet"


class MRegretNet(_LearnedAuction):
    """M-RegretNet: sells one of M shares of a privacy budget, by lot."""

    name = "m-regretnet"


class DMRegretNet(_LearnedAuction):
    """DM-RegretNet: sells one of M shares of a privacy budget, no lot."""

    name = "dm-regretnet"
