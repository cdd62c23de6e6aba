"""What mechanisms do to error, spending and truthfulness, side by side on the same profiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim import aggregation
from flmarket_sim.auctions.auction import Auction
from flmarket_sim.auctions.first_best import first_best
from flmarket_sim.auctions.play import expected_utility, measured_against
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.owners.population import draw_markets, draw_profiles
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import half_width
from flmarket_sim.strategy.probe import probe

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Score:
    """One mechanism at one budget factor (or a range of them).

    error_bound and its 95 % confidence half-width are means over valid markets; ratio is mean error over mean first-best
    of the same markets; ir_violation is the mean expected shortfall of payment below cost, relative to cost; regret is the mean
    gain / cost of the best lies that the probe found over `regret_profiles` markets, with its 95 % half-width (None: not searched).
    """

    auction: str
    budget_factor: str
    profiles: int
    error_bound: float
    error_half_width: float
    median_error_bound: float
    invalid_rate: float
    spent_share: float
    ir_violation: float
    first_best: float
    ratio: float
    regret: float | None
    regret_half_width: float | None
    regret_profiles: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def evaluate(
    auctions: dict[str, Auction],
    truth: Profiles,
    factor: Floats,
    label: str,
    *,
    rule: str = "opt-aggr",
    clip: float = 1.0,
    regret_profiles: int = 0,
    floor: Floats | None = None,
    seed: int = 0,
    effort: str = "standard",
) -> list[Score]:
    """Scores of every auction on the same markets, market k at factor[k] times the value of everything for sale."""
    budget = factor * truth.total_value()
    floor = first_best(truth, budget, clip).error_bound if floor is None else floor
    scores = []
    for name, auction in auctions.items():
        bids = truth.bids()
        outcome = auction.decide(bids, budget, np.random.default_rng(seed))
        weights = aggregation.create(rule).weights(outcome.privacy_loss, truth.data_size, clip)
        error = aggregation.error_bound(weights, outcome.privacy_loss, truth.data_size, clip)
        valid = np.isfinite(error)
        utility, cost = expected_utility(auction, truth, bids, budget)
        shortfall = np.maximum(-utility, 0.0) / measured_against(truth, cost)
        regret = half = None
        if regret_profiles:
            rows = slice(0, regret_profiles)
            gains = probe(
                auction, truth.take(rows), budget[rows], seed=seed, effort=effort
            ).relative_gain
            per_market = gains.mean(axis=1)
            regret, half = float(gains.mean()), half_width(per_market)
        mean = float(error[valid].mean()) if valid.any() else float("inf")
        scores.append(
            Score(
                auction=name,
                budget_factor=label,
                profiles=len(error),
                error_bound=mean,
                error_half_width=half_width(error[valid]),
                median_error_bound=float(np.median(error)),
                invalid_rate=float(1 - valid.mean()),
                spent_share=float((outcome.payment.sum(axis=1) / budget).mean()),
                ir_violation=float(shortfall.mean()),
                first_best=float(floor.mean()),
                ratio=mean / float(floor[valid].mean()) if valid.any() else float("inf"),
                regret=regret,
                regret_half_width=half,
                regret_profiles=regret_profiles,
            )
        )
    return scores


def sweep(
    auctions: dict[str, Auction],
    scenario: Scenario,
    factors: list[float] | None,
    profiles: int,
    rule: str,
    regret_profiles: int,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> list[Score]:
    """Scores at each budget factor, or, without factors, at factors drawn uniformly from [0.1, 2]."""
    if factors is None:
        truth, drawn = draw_markets(scenario, profiles, None, seed)
        settings = [("0.1 to 2.0", drawn)]
    else:
        truth = draw_profiles(scenario, profiles, seed)
        settings = [(f"{factor:g}", np.full(profiles, factor)) for factor in factors]
    scores: list[Score] = []
    for done, (label, factor) in enumerate(settings, 1):
        clip = scenario.privacy.clip
        scores += evaluate(
            auctions,
            truth,
            factor,
            label,
            rule=rule,
            clip=clip,
            regret_profiles=regret_profiles,
            seed=seed,
        )
        if progress is not None:
            progress(done, len(settings))
    return scores
