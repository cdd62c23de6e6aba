"""MFG-RegretNet: a learned auction that reads the mean of all bids beside the bids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from flmarket_sim.auctions.auction import Floats, Outcome, check_budget
from flmarket_sim.auctions.learned.regretnet import CHUNK, torch_from
from flmarket_sim.errors import InputError
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.threads import one_torch_thread

if TYPE_CHECKING:
    from torch import Tensor

    from flmarket_sim.auctions.learned.mfg_network import MfgNetwork


class MfgRegretNet:
    """MFG-RegretNet as published: buys whole privacy budgets by lot. `weights` is a file.

    Sun, Li, Chen, Meng and Guo, "Privacy as Commodity: MFG-RegretNet for Large-Scale Privacy
    Trading in Federated Learning" (arXiv 2603.28329, 2026). The input is not normalised: the
    network was trained for valuations of 0 to 1 for a unit of privacy loss, privacy budgets of 0.1
    to 5 and 10 to 500 records. Owners are paid whether the lot makes them sell or not, as in
    RegretNet. There are no weights in this package; `mfg-regretnet@FILE` names a safetensors file
    with the tensors `allocation_head.*` and `payment_head.*`.

    The publication claims truth, up to a small regret, and individual rationality for costs in
    proportion to the loss, which is no class of `claims`. The network promises neither.
    """

    name = "mfg-regretnet"
    formula = "chance of a sale: softmax of a network; payment: its sigmoid times B, scaled to B"
    reference = "Sun, Li, Chen, Meng and Guo, Privacy as Commodity (arXiv 2603.28329, 2026)"
    guarantees = {"truthful": "none", "individually_rational": "none", "budget_feasible": "any"}

    def __init__(self, weights: str) -> None:
        from flmarket_sim.auctions.learned import weight_files

        self.network: MfgNetwork = weight_files.load_mfg(weights)

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        """One draw."""
        lot = rng.random(bids.shape)
        sells, paid = np.empty(bids.shape), np.empty(bids.shape)
        for rows, chance, payment in self._chunks(bids, budget):
            sells[rows] = lot[rows] < chance[..., 1]
            paid[rows] = payment
        return Outcome(bids.privacy_budget * sells, paid)

    def expected(self, bids: BidBatch, budget: Floats) -> tuple[Floats, Floats]:
        """(K, n, 2) chance and payment of selling nothing and everything."""
        chance, paid = np.empty((*bids.shape, 2)), np.empty((*bids.shape, 2))
        for rows, some, payment in self._chunks(bids, budget):
            chance[rows], paid[rows] = some, payment[..., None]
        return chance, paid

    def relaxed(
        self, values: Tensor, privacy_budget: Tensor, data_size: Tensor, budget: Tensor
    ) -> tuple[Tensor, Tensor]:
        """`expected` on tensors, with a gradient in the values."""
        from flmarket_sim.auctions.learned.mfg_network import outcome_of

        chance, payment = outcome_of(
            self.network, values[..., -1], privacy_budget, data_size, budget
        )
        return chance.to(values.dtype), payment[..., None].expand_as(chance).to(values.dtype)

    def _chunks(self, bids: BidBatch, budget: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
        """Chances (K, n, 2) and payments (K, n), for some thousand markets at a time."""
        import torch

        from flmarket_sim.auctions.learned.mfg_network import outcome_of

        money = check_budget(bids, budget)
        if bids.shape[1] != self.network.n:
            raise InputError(
                f"auction {self.name!r}: these weights were trained for {self.network.n} bidders, "
                f"not for {bids.shape[1]}"
            )
        columns = (bids.full_value, bids.privacy_budget, bids.data_size, money)
        with torch.inference_mode(), one_torch_thread():
            for begin in range(0, len(money), CHUNK):
                rows = slice(begin, begin + CHUNK)
                parts = (torch_from(column[rows]) for column in columns)
                chance, payment = outcome_of(self.network, *parts)
                yield rows, chance.numpy(), payment.numpy()
