"""The learned auctions of the paper (section V): RegretNet, M-RegretNet and DM-RegretNet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import Floats, Outcome, check_budget
from flmarket_sim.auctions.learned.regime import kappa_of
from flmarket_sim.errors import InputError
from flmarket_sim.owners.bids import BidBatch

if TYPE_CHECKING:
    from torch import Tensor

    from flmarket_sim.auctions.learned.level_outcome import ReportTensors
    from flmarket_sim.auctions.learned.weight_files import Learned

CHUNK = 1024  # markets in one pass of the network
SLACK = 2e-6
TIE = 1e-6  # of an owner's largest payment: smaller differences of utility are rounding


class _LearnedAuction:
    """What the three share. `expected` gives the mean outcome, `decide` one draw of it."""

    name = ""
    guarantees = {"truthful": "none", "individually_rational": "none", "budget_feasible": "any"}

    def __init__(
        self, weights: str = "paper-iid", rule: Literal["opt-aggr", "convl-aggr"] = "opt-aggr"
    ) -> None:
        from flmarket_sim.auctions.learned import weight_files

        self.learned: Learned = weight_files.load(weights, self.name, rule)
        self.trained_kappa = kappa_of(self.learned.facts)
        self._level_count = int(self.learned.network.levels)  # type: ignore[arg-type]

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        """One draw; deterministic auctions draw nothing."""
        lots = None if self.learned.deterministic else rng.random(bids.shape)
        share, paid = np.empty(bids.shape), np.empty(bids.shape)
        if self.learned.network.kind == "menu":
            for rows, _, favourite, price in self._favourites(bids, budget):
                share[rows], paid[rows] = favourite / self._level_count, price
            return Outcome(bids.privacy_budget * share, paid)
        for rows, chance, payment in self._chunks(bids, budget):
            if lots is None:
                level = chance.argmax(-1)
            else:
                level = (
                    (torch_from(lots[rows])[..., None] >= chance.cumsum(-1))
                    .sum(-1)
                    .clamp(max=chance.shape[-1] - 1)
                )
            share[rows] = level.numpy() / (chance.shape[-1] - 1)
            paid[rows] = payment.gather(-1, level[..., None])[..., 0].numpy()
        return Outcome(bids.privacy_budget * share, paid)

    def expected(self, bids: BidBatch, budget: Floats) -> tuple[Floats, Floats]:
        """(K, n, M + 1) chance and payment of every level, "nothing" first."""
        if self.learned.network.kind == "menu":
            chance, payment = (np.zeros((*bids.shape, self._level_count + 1)) for _ in range(2))
            for rows, menu, level, paid in self._favourites(bids, budget):
                payment[rows, :, 1:] = menu
                np.put_along_axis(payment[rows], level[..., None], paid[..., None], axis=2)
                np.put_along_axis(chance[rows], level[..., None], 1.0, axis=2)
            return chance, payment
        parts = [(z.double().numpy(), p.double().numpy()) for _, z, p in self._chunks(bids, budget)]
        return np.concatenate([part[0] for part in parts]), np.concatenate(
            [part[1] for part in parts]
        )

    def relaxed(
        self,
        values: Tensor,
        privacy_budget: Tensor,
        data_size: Tensor,
        budget: Tensor,
        temperature: float = 0.05,
    ) -> tuple[Tensor, Tensor]:
        """`expected` on tensors, with a smooth choice of levels and a gradient in the values."""
        import torch

        from flmarket_sim.auctions.learned.level_outcome import ReportTensors, outcome_of

        at_levels = _interpolation(values.shape[-1], self._level_count)
        reports = ReportTensors(
            values @ torch.from_numpy(at_levels).to(values.dtype), privacy_budget, data_size, budget
        )
        learned = self.learned
        outcome = outcome_of(
            learned.network,
            reports,
            deterministic=learned.deterministic,
            keeps_zero=learned.keeps_zero,
            temperature=temperature if learned.deterministic else None,
        )
        return outcome.chance, outcome.payment

    def _favourites(
        self, bids: BidBatch, budget: Floats
    ) -> Iterator[tuple[slice, Floats, NDArray[np.int64], Floats]]:
        """Menus (k, n, M), favourite levels (0: nothing) and their payments, for some markets at a
        time.

        The network computes in single precision. So menus are reduced by `SLACK`, which keeps sums
        within the budget, and no payment is below the reported value to the last bit.
        """
        import torch

        money = check_budget(bids, budget)
        network = self.learned.network
        values = np.minimum(
            bids.at_levels(self._level_count), money[:, None, None]
        )  # see level_outcome.within_means
        with torch.inference_mode():
            for rows, exact in _batches(values, bids, money):
                reports = [report.float() for report in exact]
                menu = network(*reports).mul_(1.0 - SLACK)
                utility = menu - reports[0]
                best = utility.amax(-1, keepdim=True)
                tie = (utility >= best - TIE * menu[..., -1:]) & ((utility >= 0) | (best < 0))
                favourite = (
                    tie.shape[-1] - 1 - tie.flip(-1).int().argmax(-1)
                )  # of levels alike to rounding, the largest
                paid = menu.gather(-1, favourite[..., None])[..., 0].double().numpy()
                value = np.take_along_axis(values[rows], favourite.numpy()[..., None], axis=2)[
                    ..., 0
                ]
                sells = best[..., 0].numpy() >= 0
                level = np.where(sells, favourite.numpy() + 1, 0)
                yield rows, menu.numpy(), level, np.where(sells, np.maximum(paid, value), 0.0)

    def _chunks(self, bids: BidBatch, budget: Floats) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Chances and payments, for some thousand markets at a time."""
        import torch

        from flmarket_sim.auctions.learned.level_outcome import outcome_of

        money = check_budget(bids, budget)
        network, learned = self.learned.network, self.learned
        n = int(network.n)  # type: ignore[arg-type]
        if n and bids.shape[1] != n:
            raise InputError(
                f"auction {self.name!r}: these weights were trained for {n} bidders, "
                f"not for {bids.shape[1]}"
            )
        values = bids.at_levels(self._level_count)
        with torch.inference_mode():
            for rows, reports in _batches(values, bids, money):
                outcome = outcome_of(
                    network,
                    reports,
                    deterministic=learned.deterministic,
                    keeps_zero=learned.keeps_zero,
                )
                yield rows, outcome.chance, outcome.payment


def _batches(
    values: Floats, bids: BidBatch, money: Floats
) -> Iterator[tuple[slice, ReportTensors]]:
    """Reports with these values as tensors, for CHUNK markets at a time."""
    from flmarket_sim.auctions.learned.level_outcome import ReportTensors

    for begin in range(0, len(values), CHUNK):
        rows = slice(begin, begin + CHUNK)
        columns = (values, bids.privacy_budget, bids.data_size, money)
        yield rows, ReportTensors(*(torch_from(column[rows]) for column in columns))


def _interpolation(reported: int, levels: int) -> Floats:
    """(reported, levels) matrix from tables to values at other levels (see BidBatch.at_levels)."""
    shares = np.arange(1, levels + 1) / levels
    knots = np.arange(reported + 1) / reported
    return np.stack(
        [np.interp(shares, knots, np.eye(reported + 1)[m]) for m in range(1, reported + 1)]
    )


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
