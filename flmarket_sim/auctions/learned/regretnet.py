"""The learned auctions of the paper (section V): RegretNet, M-RegretNet and DM-RegretNet."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.aggregation.market_error import MarketError
from flmarket_sim.auctions.auction import Auction, Floats, Outcome, check_budget
from flmarket_sim.auctions.learned.regime import kappa_of
from flmarket_sim.errors import InputError
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.threads import one_torch_thread

if TYPE_CHECKING:
    from torch import Tensor

    from flmarket_sim.auctions.learned.level_outcome import ReportTensors
    from flmarket_sim.auctions.learned.menu_network import Menus
    from flmarket_sim.auctions.learned.weight_files import Learned

CHUNK = 1024  # markets in one pass of the network


class _LearnedAuction:
    """What the three share. `expected` gives the mean outcome, `decide` one draw of it."""

    name = ""
    guarantees = {"truthful": "none", "individually_rational": "none", "budget_feasible": "any"}

    def __init__(
        self, weights: str = "general", rule: Literal["opt-aggr", "convl-aggr"] = "opt-aggr"
    ) -> None:
        from flmarket_sim.auctions.learned import weight_files

        self.learned: Learned = weight_files.load(weights, self.name, rule)
        self.trained_kappa = kappa_of(self.learned.facts)
        self._level_count = int(self.learned.network.levels)  # type: ignore[arg-type]
        self.by_size = float(rule == "convl-aggr")
        self._offers_menus = self.learned.network.kind != "paper"
        self.certified = (
            ("data_size",) if self._offers_menus else ()
        )  # parts of a report that the broker has checked

    def in_market(self, error: MarketError) -> Auction:
        """Menus depend on the market's kappa; the paper's networks do not know it."""
        if not self._offers_menus:
            return self
        from flmarket_sim.auctions.learned.menu_network import KAPPAS

        low, high = KAPPAS
        there = copy(self)
        there.trained_kappa = min(max(error.kappa, low), high)
        return there

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        """One draw; deterministic auctions draw nothing."""
        share, paid = np.empty(bids.shape), np.empty(bids.shape)
        if self._offers_menus:
            lot = None if self.learned.deterministic else rng.random(len(share))
            for rows, menus in self._menus(bids, budget, lot):
                level = menus.level[..., None]
                share[rows] = menus.level.numpy() / self._level_count
                chosen = menus.payment.gather(-1, (level - 1).clamp(min=0)) * (level > 0)
                paid[rows] = chosen[..., 0].numpy()
            return Outcome(bids.privacy_budget * share, paid)
        lots = None if self.learned.deterministic else rng.random(bids.shape)
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
            values @ torch.from_numpy(at_levels).to(values.dtype),
            privacy_budget,
            data_size,
            budget,
            torch.full_like(budget, self.trained_kappa),
            torch.full_like(budget, self.by_size),
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

    def _menus(
        self, bids: BidBatch, budget: Floats, lot: Floats | None
    ) -> Iterator[tuple[slice, Menus]]:
        """Menus and favourites, for some markets at a time; a lot (K,) is the coin.

        Money is counted in double precision, so that rounding neither overspends nor underpays.
        """
        import torch

        money = check_budget(bids, budget)
        values = np.minimum(
            bids.at_levels(self._level_count), money[:, None, None]
        )  # see level_outcome.within_means
        with torch.inference_mode(), one_torch_thread():
            for rows, reports in self._batches(values, bids, money):
                upwards = None if lot is None else torch_from(lot[rows] < 0.5)
                yield rows, self.learned.network(*reports, None, upwards)

    def _chunks(self, bids: BidBatch, budget: Floats) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Chances and payments, for some thousand markets at a time."""
        import torch

        from flmarket_sim.auctions.learned.level_outcome import outcome_of

        money = check_budget(bids, budget)
        network, learned = self.learned.network, self.learned
        n = int(network.n)  # type: ignore[arg-type]  # 0: any number
        if n and bids.shape[1] != n:
            raise InputError(
                f"auction {self.name!r}: these weights were trained for {n} bidders, "
                f"not for {bids.shape[1]}"
            )
        values = bids.at_levels(self._level_count)
        with torch.inference_mode():
            for rows, reports in self._batches(values, bids, money):
                outcome = outcome_of(
                    network,
                    reports,
                    deterministic=learned.deterministic,
                    keeps_zero=learned.keeps_zero,
                )
                yield rows, outcome.chance, outcome.payment

    def _batches(
        self, values: Floats, bids: BidBatch, money: Floats
    ) -> Iterator[tuple[slice, ReportTensors]]:
        """Reports with these values as tensors, for CHUNK markets at a time."""
        from flmarket_sim.auctions.learned.level_outcome import ReportTensors

        kappa, by_size = (np.full(len(money), x) for x in (self.trained_kappa, self.by_size))
        for begin in range(0, len(values), CHUNK):
            rows = slice(begin, begin + CHUNK)
            columns = (values, bids.privacy_budget, bids.data_size, money, kappa, by_size)
            yield rows, ReportTensors(*(torch_from(column[rows]) for column in columns))


def _interpolation(reported: int, levels: int) -> Floats:
    """(reported, levels) matrix from tables to values at other levels (see BidBatch.at_levels)."""
    shares = np.arange(1, levels + 1) / levels
    knots = np.arange(reported + 1) / reported
    return np.stack(
        [np.interp(shares, knots, np.eye(reported + 1)[m]) for m in range(1, reported + 1)]
    )


def torch_from(array: NDArray[Any]) -> Tensor:
    import torch

    return torch.from_numpy(np.ascontiguousarray(array))


class RegretNet(_LearnedAuction):
    """RegretNet, budget-feasible: buys a whole privacy budget or nothing, by lot (M = 1)."""

    name = "regretnet"
    formula = (
        "a lot over selling eb_i for p_i or nothing; a network makes p_i from all but her report"
    )
    reference = (
        "Duetting et al., Optimal Auctions through Deep Learning (ICML 2019), as in FL-Market"
    )


class MRegretNet(_LearnedAuction):
    """M-RegretNet: sells one of M shares of a privacy budget, by lot."""

    name = "m-regretnet"
    formula = "a lot over m eb_i / M for p_i(m); a network makes p_i from all but her report"
    reference = "Zheng, Cao, Yoshikawa, Li and Yan, FL-Market (IEEE BigData 2022), section V"


class DMRegretNet(_LearnedAuction):
    """DM-RegretNet: sells one of M shares of a privacy budget, no lot."""

    name = "dm-regretnet"
    formula = "argmax over m of p_i(m) - v_i(m); a network makes p_i from all but her report"
    reference = "Zheng, Cao, Yoshikawa, Li and Yan, FL-Market (IEEE BigData 2022), section V"
