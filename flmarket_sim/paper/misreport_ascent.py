"""Gradient ascent on misreports, one owner at a time: the attack behind the paper's regret.

A report is (valuations of M levels for one record, privacy budget, records). In copy (k, i) of
market k owner i reports her misreport and everybody else the truth; all copies ascend together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from flmarket_sim.auctions.learned.level_outcome import LevelOutcome, ReportTensors, outcome_of
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.owners.valuation import SQRT
from flmarket_sim.training.type_space import Types

OWNERS, LEVELS = 1, 2  # axes of valuations (K, n, M)
LEAST_BUDGET = 0.01  # of the true one, for networks that read its logarithm


class UnitReports(NamedTuple):
    """Reports in the units of the authors' code: valuations (K, n, M), the others (K, n)."""

    valuation: Tensor  # money for a record
    privacy_budget: Tensor
    data_size: Tensor


class LiarsMarket:
    """K markets of n owners with a learned auction, and every owner's utility of a misreport."""

    def __init__(
        self, learned: Any, truth: Profiles, money: NDArray[np.float64], by_size: float = 0.0
    ) -> None:
        columns = (truth.family, truth.rate, truth.privacy_budget, truth.data_size, money)
        self.learned = learned
        self.types = Types(
            *(torch.from_numpy(np.asarray(column, np.float32)) for column in columns)
        )
        self.levels = int(learned.network.levels)
        reports = self._truthful(by_size)
        self.public = reports.kappa, reports.by_size
        self.honest = UnitReports(
            reports.values / reports.data_size[..., None], reports.privacy_budget, reports.data_size
        )
        self.least_budget = self.honest.privacy_budget * (
            0.0 if learned.network.kind == "paper" else LEAST_BUDGET
        )

    def truthful_outcome(self) -> LevelOutcome:
        """Chances and payments (K, n, M + 1) when nobody misreports."""
        with torch.no_grad():
            return self._outcome(self._truthful(float(self.public[1][0])), None)

    def lying_outcome(self, lie: UnitReports, temperature: float | None = None) -> LevelOutcome:
        """Chances and payments (K, n, M + 1) of every owner in the copy in which only she lies.

        With a `temperature`, a deterministic choice of levels is smooth.
        """
        markets, n = lie.data_size.shape
        own = torch.eye(n, dtype=torch.bool)
        mixed = [
            torch.where(own[..., None] if part.dim() == 3 else own, part[:, None], truth[:, None])
            for part, truth in zip(lie, self.honest, strict=True)
        ]
        valuation, budget, size = (part.flatten(0, 1) for part in mixed)
        money = self.types.budget.repeat_interleave(n)
        kappa, by_size = (column.repeat_interleave(n) for column in self.public)
        values = valuation * size[..., None]
        reports = ReportTensors(values, budget, size, money, kappa, by_size)
        owner = torch.arange(n).repeat(markets)
        everybody = self._outcome(reports, temperature)
        return LevelOutcome(
            *(part[torch.arange(len(owner)), owner].reshape(markets, n, -1) for part in everybody)
        )

    def costs(self, lie: UnitReports) -> Tensor:
        """(K, n, M + 1) true value of each level of the reported budget on the reported records."""
        share = torch.arange(self.levels + 1) / self.levels
        return self.types.value(lie.privacy_budget[..., None] * share, lie.data_size)

    def utility(
        self, lie: UnitReports, temperature: float | None, lots: torch.Generator | None
    ) -> Tensor:
        """(K, n) utility of each liar: of one draw of the levels with `lots`, else in expectation.

        A drawn level carries no gradient, and neither does a hard choice.
        """
        chance, payment = self.lying_outcome(lie, temperature)
        surplus = payment - self.costs(lie)
        return _drawn(surplus, chance, lots) if lots else (chance * surplus).sum(-1)

    def ascent(
        self,
        steps: int,
        rate: float,
        monotone_over: int,
        lots: torch.Generator | None = None,
        temperature: float | None = None,
        relative: bool = False,
    ) -> Iterator[UnitReports]:
        """The misreports after each of `steps` plain gradient steps from the truth.

        Steps are in the units of the report or, if `relative`, of utility for a record and of the
        share of the records.
        """
        size = self.honest.data_size
        one = torch.ones(())
        scale = (1 / size[..., None], 1 / size, size) if relative else (one, one, one)
        lie = self.honest
        for _ in range(steps):
            parts = UnitReports(*(part.detach().clone().requires_grad_(True) for part in lie))
            total = self.utility(parts, temperature, lots).sum()
            slopes = torch.autograd.grad(total, parts, allow_unused=True)
            with torch.no_grad():
                moved = [
                    part if slope is None else part + rate * factor * slope.nan_to_num(nan=0.0)
                    for part, slope, factor in zip(parts, slopes, scale, strict=True)
                ]
                # The slope of a root at 0 is no number, so the owner stays there.
                stuck = (self.types.family == SQRT) & (lie.privacy_budget == 0)
                moved[1] = torch.where(stuck, 0.0, moved[1])
                lie = self._allowed(UnitReports(*moved), monotone_over)
            yield lie

    def _allowed(self, lie: UnitReports, monotone_over: int) -> UnitReports:
        """The report with valuations that never fall along an axis, within the owner's means."""
        budget = torch.maximum(lie.privacy_budget, self.least_budget)
        size = torch.minimum(lie.data_size, self.honest.data_size)
        return UnitReports(
            lie.valuation.clamp(min=0.0).cummax(dim=monotone_over).values,
            torch.minimum(budget, self.honest.privacy_budget),
            size.clamp(min=1.0),
        )

    def _truthful(self, by_size: float) -> ReportTensors:
        reports = self.types.truthful(self.levels)
        return reports._replace(by_size=torch.full_like(reports.by_size, by_size))

    def _outcome(self, reports: ReportTensors, temperature: float | None) -> LevelOutcome:
        learned = self.learned
        return outcome_of(
            learned.network, reports, deterministic=learned.deterministic,
            keeps_zero=learned.keeps_zero,
            temperature=temperature if learned.deterministic else None,
        )  # fmt: skip


def _drawn(values: Tensor, chance: Tensor, lots: torch.Generator) -> Tensor:
    """(K, n) the value of a level that is drawn for each owner by the chances (K, n, M + 1)."""
    lot = torch.rand((*chance.shape[:-1], 1), generator=lots, dtype=chance.dtype)
    level = (lot >= chance.detach().cumsum(-1)).sum(-1, keepdim=True)
    return values.gather(-1, level.clamp(max=chance.shape[-1] - 1))[..., 0]
