"""The search for an owner's best report: stages of candidates, each scored on the deployed
mechanism.

What it finds is a lower bound on regret: no search can show that there is no better misreport.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import Auction, Differentiable, certified_parts
from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.owners.family_table import FAMILIES
from flmarket_sim.owners.stated_valuation import StatedValuations
from flmarket_sim.randomness import Purpose, Streams
from flmarket_sim.strategy import candidates
from flmarket_sim.strategy.gradient_ascent import ascended
from flmarket_sim.strategy.misreports import Bools, Floats, Ints, Liars, Misreports
from flmarket_sim.strategy.payoff import Payoff
from flmarket_sim.strategy.search_effort import Effort, effort_of
from flmarket_sim.threads import one_torch_thread

STAGES = (
    "truth",
    "grid",
    "families",
    "shapes",
    "neighbours",
    "random",
    "refined",
    "gradient",
    "polished",
    "start",
    "budgets",
)
ROUNDING = 1e-12  # of the buyer's money: what no report can be said to gain
FRESH_DRAWS = 256
CERTAIN = 3.0  # standard errors that a gain from a sampled auction must stand above


@dataclass(frozen=True)
class BestReports:
    """The best report of each liar (G,), or the truth where nothing beats it; its utility, the
    stage that found it, and the valuation that it states."""

    values: Floats
    privacy_budget: Floats
    data_size: Floats
    utility: Floats
    truthful_utility: Floats
    stage: NDArray[np.int8]
    stated: StatedValuations

    @property
    def gain(self) -> Floats:
        return np.asarray(self.utility - self.truthful_utility)

    @property
    def misreports(self) -> Misreports:
        return Misreports(self.values, self.privacy_budget, self.data_size, self.stated)


def best_reports(
    auction: Auction,
    truth: Profiles,
    reported: BidBatch,
    budget: Floats,
    owner: Ints,
    *,
    effort: str | Effort = "quick",
    seed: int = 0,
    samples: int = 1,
    group: Bools | None = None,
    start: Misreports | None = None,
) -> BestReports:
    """The best unilateral report of owner[g] in market g, while all others report `reported`.

    With samples = S, truth has G x S markets: owner[g] is the same person in markets g S to g S + S
    - 1, and her one report is judged by its mean. `group` (K, n) marks the owners whose utilities
    are summed, by default the liar alone. `start` (G, ...) are reports to begin with, beside the
    truth.
    """
    budget = np.asarray(budget, float)
    with one_torch_thread():
        payoff = Payoff(
            auction,
            truth,
            reported,
            budget,
            np.asarray(owner),
            samples=samples,
            group=group,
            seed=seed,
        )
        certified = "data_size" in certified_parts(auction)
        liars = Liars.of(truth, reported, budget, np.asarray(owner), samples, certified)
        search = _Search(payoff, liars, effort_of(effort), Streams(seed).generator(Purpose.SEARCH))
        if start is not None:
            search.consider("start", liars.feasible(start).at(None))
        return search.run(auction)


class _Search:
    """The best report so far of every liar, and the best of every stage: starts of later stages."""

    def __init__(
        self, payoff: Payoff, liars: Liars, effort: Effort, rng: np.random.Generator
    ) -> None:
        self.payoff, self.liars, self.effort, self.rng = payoff, liars, effort, rng
        self.best = liars.truth()
        self.truthful = payoff(self.best.at(None))[0]
        self.utility = self.truthful.copy()
        self.stage = np.zeros(len(liars), np.int8)
        self.pool: list[tuple[Floats, Misreports]] = []

    def run(self, auction: Any) -> BestReports:
        effort, liars = self.effort, self.liars
        self.consider("grid", candidates.grid(liars, effort))
        self.consider("families", candidates.families(liars, effort))
        if (liars.family >= len(FAMILIES)).any():
            self.consider("budgets", candidates.budgets(liars, effort))
        self.consider("shapes", candidates.shapes(liars, effort))
        if liars.rivals.shape[1]:
            self.consider("neighbours", candidates.neighbours(liars, effort))
        self.consider("random", candidates.at_random(liars, effort.random, self.rng))
        self._refine()
        if isinstance(auction, Differentiable):
            for start in self._starts(effort.ascents):
                self.consider(
                    "gradient", ascended(auction, self.payoff, liars, start, effort.steps)
                )
        self._polish()
        self._simplify()
        if self.payoff.player.sampled:
            self._weigh_again()
        worth = self.utility > self.truthful + ROUNDING * liars.money
        best = self.best.where(worth, liars.truth())
        utility = np.where(worth, self.utility, self.truthful)
        stage = np.where(worth, self.stage, 0).astype(np.int8)
        return BestReports(
            best.values, best.privacy_budget, best.data_size, utility, self.truthful, stage,
            best.stated,
        )  # fmt: skip

    def consider(self, stage: str, reports: Misreports) -> Bools:
        """Scores candidates (C, G, ...) and keeps the best. Returns the liars (G,) whose best
        improved."""
        if self.liars.size_certified:
            reports = self.liars.feasible(reports)
        utility = self.payoff(reports)
        first = utility.argmax(axis=0)
        liar = np.arange(len(self.liars))
        best = utility[first, liar]
        chosen = reports.at((first, liar))
        if stage not in ("refined", "polished"):
            self.pool.append((best, chosen))
        better = best > self.utility
        self.best = chosen.where(better, self.best)
        self.utility = np.where(better, best, self.utility)
        self.stage[better] = STAGES.index(stage)
        return np.asarray(better)

    def _starts(self, count: int) -> list[Misreports]:
        """The `count` best reports of all stages and the truth, for each liar her own."""
        pool = [(self.truthful, self.liars.truth()), *self.pool]
        scores = np.stack([score for score, _ in pool])
        order = np.argsort(-scores, axis=0, kind="stable")[:count]
        every = Misreports.stack([reports.at(None) for _, reports in pool])
        return [every.at((place, np.arange(len(self.liars)))) for place in order]

    def _refine(self) -> None:
        """Random steps around several starts; they grow where they succeed, else they shrink."""
        effort, liars = self.effort, self.liars
        for start in self._starts(effort.starts):
            here, height = start, self.payoff(start.at(None))[0]
            scale = np.full(len(liars), 0.3)
            for _ in range(effort.rounds):
                near = candidates.around(liars, here, scale, effort.tries, self.rng)
                utility = self.payoff(near)
                first, liar = utility.argmax(axis=0), np.arange(len(liars))
                better = utility[first, liar] > height
                here = near.at((first, liar)).where(better, here)
                height = np.where(better, utility[first, liar], height)
                scale = np.clip(scale * np.where(better, 1.5, 0.6), 1e-3, 1.0)
            moved = height > self.utility
            self.best = here.where(moved, self.best)
            self.utility = np.where(moved, height, self.utility)
            self.stage[moved] = STAGES.index("refined")

    def _polish(self) -> None:
        """Steps along one part of the report at a time; they shrink when they help few liars."""
        size = 0.25
        for _ in range(self.effort.polish):
            if (
                self.consider("polished", candidates.steps(self.liars, self.best, size)).mean()
                <= 0.5
            ):
                size *= 0.4

    def _simplify(self) -> None:
        """Replaces false parts by true ones where that costs nothing, so that reports are false
        only where it pays."""
        liars = self.liars
        whole_size, whole_budget = liars.data_size, liars.privacy_budget
        attempts: list[Callable[[Misreports], Misreports]] = [
            lambda b: Misreports(
                b.values * (whole_size / b.data_size)[:, None], b.privacy_budget, whole_size
            ),
            lambda b: Misreports(b.values, b.privacy_budget, whole_size),
            lambda b: liars.honest(b.privacy_budget, b.data_size),
            lambda b: Misreports(
                b.values * (whole_budget / b.privacy_budget)[:, None], whole_budget, b.data_size
            ),
            lambda b: Misreports(b.values, whole_budget, b.data_size),
            lambda b: liars.honest(b.privacy_budget, b.data_size),
        ]
        for attempt in attempts:
            plain = liars.feasible(attempt(self.best))
            utility = self.payoff(plain.at(None))[0]
            enough = utility >= self.utility - 1e-6 * np.maximum(self.utility - self.truthful, 0.0)
            self.best = plain.where(enough, self.best)
            self.utility = np.where(enough, utility, self.utility)

    def _weigh_again(self) -> None:
        """Judges the truth and the best report again, on fresh draws.

        The best of many noisy scores is partly lucky, so a gain must be beyond chance.
        """
        seed = self.payoff.player.seed + 1_000_003
        lying, honest, error = self.payoff.paired(self.best, self.liars.truth(), seed, FRESH_DRAWS)
        certain = lying - honest > CERTAIN * error
        self.truthful = honest
        self.utility = np.where(certain, lying, honest)
