"""The probe: the best report that the search finds for every owner of every market. Its gains are
lower bounds on regret."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.auctions.auction import Auction, check_budget
from flmarket_sim.auctions.play import expected_utility, measured_against
from flmarket_sim.errors import plugin_errors
from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.owners.stated_valuation import StatedValuations
from flmarket_sim.randomness import Purpose, Streams
from flmarket_sim.statistics import Estimate, estimate
from flmarket_sim.strategy.misreports import Bools, Floats, Liars, Misreports, false_parts
from flmarket_sim.strategy.payoff import Payoff
from flmarket_sim.strategy.search import STAGES, BestReports, best_reports
from flmarket_sim.strategy.search_effort import Effort

Progress = Callable[[int, int], None]
LIARS_AT_ONCE = 2_000
NOTABLE = 0.01  # of cost: what counts as "can gain"


@dataclass(frozen=True)
class Probe:
    """The gains of misreports, all (K, n) unless stated otherwise. A better misreport may exist.

    truthful_utility   expected utility when everybody tells the truth
    best_utility       that of her best report if all others tell the truth; the truth's if nothing
                       beats it
    cost               true value of what she sells by the truth, at least that of 1/8 of her
                       privacy budget
    values (K, n, M), privacy_budget, data_size    that report
    stage              the stage of the search that found it, a position in `search.STAGES` (0: the
                       truth)
    budget (K,)        the buyer's money
    stated             the valuations that the reports state
    """

    truth: Profiles
    budget: Floats
    truthful_utility: Floats
    best_utility: Floats
    cost: Floats
    values: Floats
    privacy_budget: Floats
    data_size: Floats
    stage: NDArray[np.int8]
    stated: StatedValuations
    seed: int = 0

    def __repr__(self) -> str:
        markets, owners = self.truth.shape
        return (
            f"<Probe of {markets:,} markets with {owners:,} owners each: "
            f"mean gain / cost {self.mean_relative_gain()}>"
        )

    @cached_property
    def gain(self) -> Floats:
        return np.maximum(self.best_utility - self.truthful_utility, 0.0)

    @cached_property
    def relative_gain(self) -> Floats:
        """gain / cost: the paper's measure of regret, found by search."""
        return np.asarray(self.gain / self.cost)

    @cached_property
    def factor(self) -> Floats:
        """(K,) budget as a factor of what everything for sale is worth."""
        return np.asarray(self.budget / self.truth.total_value())

    def mean_relative_gain(self) -> Estimate:
        return estimate(self.relative_gain.mean(axis=1), self.truth.population)

    def share_gaining(self, threshold: float = NOTABLE) -> Estimate:
        """Share of owners who can gain more than `threshold` of their costs."""
        gaining = self.relative_gain > threshold
        return estimate(gaining.mean(axis=1), self.truth.population)

    def false_parts(self) -> dict[str, Bools]:
        """Which part of the best report is false; all False where the truth is best."""
        types, (markets, n) = self.truth.types, self.truth.shape
        every = np.divmod(np.arange(markets * n), n)
        nobody = np.zeros((markets * n, 0))
        liars = Liars(*types.at(every), np.zeros(markets * n), nobody, self.values.shape[2])
        lying = self.stage > 0
        reports = self.misreports().at(every)
        parts = [part.reshape(markets, n) & lying for part in false_parts(liars, reports)]
        return dict(zip(("values", "privacy_budget", "data_size"), parts, strict=True))

    def misreports(self) -> Misreports:
        """The best reports (K, n, ...), the truth where nothing beats it."""
        return Misreports(self.values, self.privacy_budget, self.data_size, self.stated)

    def market_with_misreport(self, k: int, i: int) -> BidBatch:
        """Market k when owner i makes her best report and all others tell the truth."""
        bids = self.truth.take([k]).bids(self.values.shape[2])
        return self.misreports().at((k, [i])).within(bids, np.array([i]))

    def replay(self, auction: Any, k: int, i: int) -> tuple[float, float]:
        """(truthful, lying) utility of owner i in market k, decided again."""
        truth = self.truth.take(slice(k, k + 1))
        bids = truth.bids(self.values.shape[2])
        payoff = Payoff(auction, truth, bids, self.budget[k : k + 1], np.array([i]), seed=self.seed)
        truthful = Misreports.of(bids, np.array([i]))
        pair = Misreports.stack([truthful.at(None), self.misreports().at((k, [i])).at(None)])
        honest, lying = payoff(pair)[:, 0]
        return float(honest), float(lying)


def probe(
    auction: Auction,
    truth: Profiles,
    budget: ArrayLike,
    *,
    seed: int = 0,
    effort: str | Effort = "standard",
    levels: int = 8,
    progress: Progress | None = None,
) -> Probe:
    """The best unilateral misreport found for every owner of every market.

    The search varies values (any table that does not fall), privacy budget (at most the true one)
    and data size (at most the true one, at least 1). `progress(done, total)` counts owners.
    """
    money = check_budget(truth.bids(levels), budget)
    chunks = probe_chunks(truth, money, seed)
    best: list[BestReports] = []
    for chunk in chunks:
        best.append(search_chunk(auction, chunk, effort, levels))
        if progress is not None:
            progress(chunk.end * truth.shape[1], truth.rate.size)
    return merge_chunks(auction, truth, money, best, seed=seed, levels=levels)


@dataclass(frozen=True)
class ProbeChunk:
    """Markets `begin` to `end` of a probe. `seed` is that of their search."""

    truth: Profiles
    budget: Floats
    begin: int
    seed: int

    @property
    def end(self) -> int:
        return self.begin + len(self.budget)


def probe_chunks(truth: Profiles, budget: Floats, seed: int) -> list[ProbeChunk]:
    """The markets of a probe in chunks that can be searched apart from each other."""
    markets, n = truth.shape
    per_chunk = max(1, LIARS_AT_ONCE // n)
    chunks = []
    for begin in range(0, markets, per_chunk):
        rows = slice(begin, begin + per_chunk)
        key = int(Streams(seed).generator(Purpose.SEARCH, begin).integers(2**31))
        chunks.append(ProbeChunk(truth.take(rows), budget[rows], begin, key))
    return chunks


def search_chunk(
    auction: Auction, chunk: ProbeChunk, effort: str | Effort, levels: int
) -> BestReports:
    """The best report of every owner of a chunk: market by market, owner by owner."""
    markets, n = chunk.truth.shape
    rows, owner = np.repeat(np.arange(markets), n), np.tile(np.arange(n), markets)
    with plugin_errors("auction", auction.name):
        return best_reports(
            auction,
            chunk.truth.take(rows),
            chunk.truth.bids(levels).take(rows),
            chunk.budget[rows],
            owner,
            effort=effort,
            seed=chunk.seed,
        )


def merge_chunks(
    auction: Auction,
    truth: Profiles,
    budget: Floats,
    best: Sequence[BestReports],
    *,
    seed: int,
    levels: int,
) -> Probe:
    """The probe of all markets, from the best reports of each chunk."""
    with plugin_errors("auction", auction.name):
        honest, cost = expected_utility(auction, truth, truth.bids(levels), budget, seed)

    def whole(name: str) -> Any:
        column = np.concatenate([getattr(chunk, name) for chunk in best])
        return column.reshape(*truth.shape, *column.shape[1:])

    stated = StatedValuations.stack([chunk.stated for chunk in best])
    gain = np.maximum(whole("utility") - whole("truthful_utility"), 0.0)
    return Probe(
        truth, budget, honest, honest + gain, measured_against(truth, cost), whole("values"),
        whole("privacy_budget"), whole("data_size"), whole("stage"),
        StatedValuations(stated.family.reshape(truth.shape), stated.scale.reshape(truth.shape)),
        seed,
    )  # fmt: skip


__all__ = ["STAGES", "Probe", "probe"]
