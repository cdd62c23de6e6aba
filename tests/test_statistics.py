"""Intervals cover what they are intervals of, and many comparisons are corrected for."""

import itertools
import tracemalloc

import numpy as np
import pytest
from scipy import stats

from flmarket_sim import statistics
from flmarket_sim.statistics import (
    Estimate,
    estimate,
    from_seeds,
    holm,
    median,
    p_below,
    share_estimate,
    simultaneous,
    trimmed_mean,
)


def sample(seed, populations=40, markets=5):
    """Markets whose populations differ: a skewed effect of the population, a small one of each."""
    rng = np.random.default_rng(seed)
    effect = np.repeat(rng.lognormal(0.0, 0.6, populations), markets)
    return effect * rng.lognormal(0.0, 0.2, len(effect)), np.repeat(np.arange(populations), markets)


MEAN = float(np.exp(0.6**2 / 2) * np.exp(0.2**2 / 2))


def coverage(intervals, truth):
    return np.mean([each.low <= truth <= each.high for each in intervals])


def test_an_interval_over_populations_covers_the_mean_of_the_market():
    samples = [sample(seed) for seed in range(300)]
    assert coverage([estimate(*each) for each in samples], MEAN) >= 0.92


def test_an_interval_that_ignores_populations_does_not():
    """The fault that this replaces: markets of one population were taken for independent."""
    samples = [sample(seed) for seed in range(300)]
    assert coverage([estimate(values) for values, _ in samples], MEAN) < 0.75


def test_a_ratio_is_one_of_sums_and_its_interval_covers_it():
    def ratio(seed):
        values, population = sample(seed)
        weights = sample(seed + 10_000)[0]
        return estimate(values * weights, population, weights)

    assert coverage([ratio(seed) for seed in range(200)], MEAN) >= 0.9
    values, population = sample(1)
    weights = np.arange(1.0, len(values) + 1)
    found = estimate(values, population, weights)
    assert found.mean == pytest.approx(sum(values) / sum(weights))


def test_an_estimate_leaves_out_what_is_no_number_and_one_population_has_no_interval():
    values = np.array([1.0, np.nan, 3.0, np.inf])
    one = estimate(values, np.zeros(4, int))
    assert one.mean == 2.0 and np.isnan(one.low)
    assert np.isnan(estimate(np.full(3, np.nan)).mean)
    assert estimate(np.ones(4), np.arange(4)) == Estimate(1.0, 1.0, 1.0)


def test_one_population_that_differs_does_not_send_the_interval_anywhere():
    values = np.zeros(60)
    values[7] = 0.5
    found = estimate(values, np.arange(60) % 30)
    assert 0.0 <= found.low <= found.mean <= found.high <= 0.25


def test_a_share_that_never_happened_has_a_chance_all_the_same():
    never = share_estimate(np.zeros(200, bool), np.repeat(np.arange(20), 10))
    exact = stats.binomtest(0, 20).proportion_ci(0.95).high
    assert never.mean == 0.0 and never.high == pytest.approx(exact)
    always = share_estimate(np.ones(200, bool), np.repeat(np.arange(20), 10))
    assert (always.low, always.high) == (pytest.approx(1 - exact), 1.0)


def test_median_and_trimmed_mean_are_those_of_the_whole_sample():
    values = np.random.default_rng(3).lognormal(0, 2, (50, 10))
    population = np.arange(50) % 25
    middle, trimmed = median(values, population), trimmed_mean(values, population)
    assert middle.mean == pytest.approx(np.quantile(values, 0.5, method="inverted_cdf"))
    assert trimmed.mean == pytest.approx(stats.trim_mean(values.ravel(), 0.1))
    assert middle.low < middle.mean < middle.high and trimmed.low < trimmed.mean < trimmed.high


def test_robust_intervals_are_those_of_resampled_populations():
    """The slow way: concatenate the markets of drawn populations, and take the median of them."""
    values = np.random.default_rng(4).exponential(1.0, (20, 3))
    population = np.arange(20) % 10
    rng, medians = np.random.default_rng(5), []
    for _ in range(2000):
        drawn = np.concatenate([values[population == p] for p in rng.integers(0, 10, 10)])
        medians.append(np.quantile(drawn, 0.5, method="inverted_cdf"))
    low, high = np.percentile(medians, [2.5, 97.5])
    found = median(values, population)
    assert found.low == pytest.approx(low, rel=0.15) and found.high == pytest.approx(high, rel=0.15)


def test_holm_rejects_what_the_closed_test_rejects():
    """The slow way: a hypothesis falls if every set of hypotheses with it falls by Bonferroni."""
    rng = np.random.default_rng(6)
    for _ in range(50):
        p = (rng.random(5) ** 3 / 4).tolist()
        sets = [s for r in range(1, 6) for s in itertools.combinations(range(5), r)]
        fallen = {s: min(p[k] for k in s) <= 0.05 / len(s) for s in sets}
        closed = [all(fallen[s] for s in sets if k in s) for k in range(5)]
        assert holm(p) == closed


def test_no_claim_is_confirmed_by_accident_more_often_than_allowed():
    rng = np.random.default_rng(7)
    wrong = 0
    for _ in range(300):
        pairs = [
            (from_seeds(rng.normal(0, 1, 30)), from_seeds(rng.normal(0, 1, 30))) for _ in range(8)
        ]
        wrong += any(holm([p for a, b in pairs for p in (p_below(a, b), p_below(b, a))]))
    assert wrong / 300 <= 0.08


def test_p_below_follows_the_gap():
    low, high = Estimate(1.0, 0.9, 1.1), Estimate(2.0, 1.9, 2.1)
    assert p_below(low, high) < 1e-6 < 0.5 == p_below(low, low) < p_below(high, low)
    assert p_below(Estimate(0, 0, 0), Estimate(1, 1, 1)) == 0.0
    unknown = Estimate(1.0, float("nan"), 2.0)
    assert p_below(Estimate(0.0, 0.0, 0.0), unknown) == 1.0


def test_simultaneous_intervals_hold_all_together_and_single_ones_do_not():
    rng = np.random.default_rng(1)
    together, alone = 0, 0
    for trial in range(150):
        shared = rng.normal(size=40)
        samples = [0.5 * shared + rng.normal(size=40) for _ in range(8)]
        found = simultaneous(samples, seed=trial)
        together += all(each.low <= 0 <= each.high for each in found)
        alone += all(
            each.low <= 0 <= each.high for each in (estimate(s, seed=trial) for s in samples)
        )
        assert [each.mean for each in found] == pytest.approx([s.mean() for s in samples])
    assert together / 150 > 0.9 > alone / 150


def test_a_simultaneous_mean_leaves_out_its_own_missing_markets_only():
    first, second = np.array([1.0, 2.0, np.inf, 4.0]), np.array([1.0, 1.0, 1.0, 1.0])
    found = simultaneous([first, second, np.full(4, np.nan)])
    assert found[0].mean == pytest.approx(7 / 3) and found[1] == Estimate(1.0, 1.0, 1.0)
    assert np.isnan(found[2].mean) and np.isnan(simultaneous([np.array([3.0])])[0].low)
    assert simultaneous([]) == []


def test_simultaneous_intervals_are_over_populations():
    rng = np.random.default_rng(2)
    population = np.repeat(np.arange(10), 20)
    sample = np.repeat(rng.normal(size=10), 20) + 0.01 * rng.normal(size=200)
    (apart,), (together,) = simultaneous([sample]), simultaneous([sample], population)
    assert together.high - together.low > 2 * (apart.high - apart.low)


@pytest.mark.parametrize("entries", [7, 1_000, 10**8])
@pytest.mark.parametrize("kept", [0, 10**6])
def test_resamples_in_blocks_are_those_of_one_draw(entries, kept, monkeypatch):
    statistics._kept.cache_clear()
    monkeypatch.setattr(statistics, "ENTRIES", entries)
    monkeypatch.setattr(statistics, "MOST_KEPT", kept)
    share = np.full(40, 1 / 40)
    once = np.random.default_rng(5).multinomial(40, share, statistics.RESAMPLES)
    blocks = list(statistics._resamples(40, 5))
    assert np.array_equal(np.concatenate(blocks), once)
    assert all(block.size <= max(entries, 40) for block in blocks)
    statistics._kept.cache_clear()


def test_an_interval_over_many_rounds_takes_little_memory():
    """A run of 30,000 rounds: drawn at once, its resamples would be 240 MB, and as much again."""
    sample = np.random.default_rng(1).exponential(size=30_000)
    tracemalloc.start()
    found = statistics.estimate(sample)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 250e6
    half = 1.96 * sample.std(ddof=1) / np.sqrt(len(sample))
    assert found.high - found.mean == pytest.approx(half, rel=0.1)
