"""How often the intervals of the main tables cover what they are intervals of.

`python -m benchmarks.coverage [SAMPLES] [MARKETS]` draws 100 fresh samples of populations and
markets (2,000 markets each, as the main tables have). Each sample gives an interval of every
number; the interval should cover the mean of all other samples in 95 of 100 cases. The gains of
misreports come from samples of 100 markets, as in the study of them. The table is in
docs/testing.md.
"""

from __future__ import annotations

import os
import sys
from multiprocessing import Pool

import numpy as np

import flmarket_sim as fm
from flmarket_sim.paper.paper_market import PaperMarket
from flmarket_sim.paper.reproduction import experiment
from flmarket_sim.statistics import Estimate, estimate, share_estimate
from flmarket_sim.strategy.probe import probe
from flmarket_sim.studies.study_run import study_of
from flmarket_sim.threads import one_torch_thread

AUCTIONS = ("dm-regretnet", "all-in-critical", "fair-query", "seq-price")
FACTORS = (0.1, 0.5, 1.0, 2.0)
PROBED = 100  # markets of a sample whose owners are searched for misreports
SCENARIO = experiment("error-bound", quick=False)
Number = tuple[str, ...]  # market, measure, auction, budget factor


def numbers_of(job: tuple[int, int]) -> dict[Number, Estimate]:
    """Every number of one sample, with its interval."""
    sample, count = job
    found: dict[Number, Estimate] = {}
    with one_torch_thread():
        for market in study_of(SCENARIO).markets:
            found |= _of_market(market, 10_000 + sample, count)
    return found


def _of_market(market: PaperMarket, seed: int, count: int) -> dict[Number, Estimate]:
    truth = fm.draw_profiles(market.of(SCENARIO), count, seed=seed)
    population, bids, found = truth.population, truth.bids(), {}
    for factor in FACTORS:
        budget = factor * truth.total_value()
        for name in AUCTIONS:
            auction = market.auction(name, "opt-aggr")
            outcome = auction.decide(bids, budget, np.random.default_rng(seed))
            errors = [
                fm.aggregation.error_bound(
                    fm.aggregation.create(rule).weights(outcome.privacy_loss, truth.data_size),
                    outcome.privacy_loss,
                    truth.data_size,
                )
                for rule in ("opt-aggr", "convl-aggr")
            ]
            kept = (outcome.payment - truth.value(outcome.privacy_loss)).sum(axis=1) / budget
            with np.errstate(invalid="ignore"):
                saving = 1 - errors[0] / errors[1]
            for measure, value in (
                ("error bound", estimate(errors[0], population)),
                ("saving", estimate(saving, population)),
                ("owners' surplus", estimate(kept, population)),
                ("invalid gradients", share_estimate(~np.isfinite(errors[0]), population)),
            ):
                found[market.name, measure, name, f"{factor:g}"] = value
    few = truth.take(slice(0, PROBED))
    search = probe(fm.auctions.create("all-in"), few, few.total_value(), effort="quick", seed=seed)
    found[market.name, "gain of misreports", "all-in", "1"] = search.mean_relative_gain()
    return found


def covered(samples: list[dict[Number, Estimate]]) -> dict[Number, float]:
    """For each number the share of samples whose interval covers the mean of the other samples."""
    shares = {}
    for number in samples[0]:
        values = [sample[number] for sample in samples]
        total = sum(value.mean for value in values)
        hits = [
            value.low <= (total - value.mean) / (len(values) - 1) <= value.high for value in values
        ]
        shares[number] = float(np.mean(hits))
    return shares


def main(samples: int = 100, markets: int = 2000) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    found = []
    with Pool() as pool:
        jobs = [(sample, markets) for sample in range(samples)]
        for done, numbers in enumerate(pool.imap(numbers_of, jobs), 1):
            found.append(numbers)
            print(f"\r{done} of {samples} samples", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    shares = covered(found)
    print(f"{samples} samples of {markets} markets ({PROBED} for the gain of misreports)\n")
    print("| market | measure | numbers | mean coverage | least |\n|---|---|---|---|---|")
    for market, measure in dict.fromkeys(number[:2] for number in shares):
        of_measure = [v for number, v in shares.items() if number[:2] == (market, measure)]
        mean, least = np.mean(of_measure), min(of_measure)
        print(f"| {market} | {measure} | {len(of_measure)} | {mean:.1%} | {least:.0%} |")
    print(f"| both | all | {len(shares)} | {np.mean(list(shares.values())):.1%} | |")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
