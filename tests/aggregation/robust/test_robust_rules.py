"""Robust rules against slow twins, and what each withstands."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flmarket_sim.aggregation.robust.distances import squared_distances
from flmarket_sim.aggregation.robust.geometric_median import geometric_median
from flmarket_sim.aggregation.robust.robust_rule import combined, standardised
from flmarket_sim.aggregation.weighted_sum import weighted_sum
from flmarket_sim.errors import InputError
from flmarket_sim.plugins.registry import robust_rules
from tests.aggregation.robust import slow_rules

NAMES = robust_rules.names()


def market(seed, n=None, dimension=None):
    """Messages, weights in twentieths (some 0), and unequal variances."""
    rng = np.random.default_rng(seed)
    n = n or int(rng.integers(1, 12))
    dimension = dimension or int(rng.integers(1, 6))
    weights = rng.multinomial(slow_rules.COPIES, np.ones(n) / n) / slow_rules.COPIES
    variance = rng.uniform(0.5, 20.0, n)
    messages = 1.0 + rng.normal(size=(n, dimension)) * np.sqrt(variance / dimension)[:, None]
    return messages, weights, variance


SEEDS = st.integers(0, 10**6)


@given(SEEDS)
def test_the_weighted_median_is_the_median_of_messages_repeated_by_weight(seed):
    messages, weights, variance = market(seed)
    alike = np.full(len(weights), variance[0])
    ours = combined(robust_rules.create("coordinate-median"), messages, weights, alike)
    assert ours == pytest.approx(slow_rules.coordinate_median(messages, weights, alike))


@given(SEEDS)
def test_a_median_standardises_weights_by_noise(seed):
    messages, _, variance = market(seed)
    wanted = np.rint(np.ones(len(variance)) * 2) / (2 * len(variance))
    weights = wanted / np.sqrt(variance)  # standardised, these are all alike
    ours = combined(
        robust_rules.create("coordinate-median"), messages, weights / weights.sum(), variance
    )
    assert ours == pytest.approx(np.median(messages, axis=0))


@given(SEEDS, st.sampled_from([0.0, 0.1, 0.25, 0.45]))
def test_the_trimmed_mean_is_the_mean_of_messages_repeated_by_weight(seed, trim):
    messages, weights, variance = market(seed)
    ours = combined(robust_rules.create("trimmed-mean", trim=trim), messages, weights, variance)
    assert ours == pytest.approx(slow_rules.trimmed_mean(messages, weights, trim))


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_no_point_has_a_smaller_sum_of_distances_than_the_geometric_median(seed):
    messages, weights, variance = market(seed, n=1 + seed % 5, dimension=1 + seed % 3)
    ours = combined(robust_rules.create("geometric-median"), messages, weights, variance)
    least = slow_rules.geometric_median_value(messages, weights, variance)
    assert slow_rules.sum_of_distances(ours, messages, weights, variance) <= least * (1 + 2e-7)


@given(SEEDS, st.sampled_from([0.0, 0.1, 0.2, 0.45]))
def test_krum_chooses_by_scores_that_loops_work_out(seed, cheats):
    messages, _, variance = market(seed)
    weights = np.ones(len(variance)) / len(variance)
    order, f = slow_rules.krum_order(messages, variance, cheats, np.ones(len(weights)))
    one = combined(robust_rules.create("krum", cheats=cheats), messages, weights, variance)
    if len(messages) != 2:  # then both scores differ by the noise only
        assert one == pytest.approx(messages[order[0]])
    several = robust_rules.create("multi-krum", cheats=cheats)
    order, _ = slow_rules.krum_order(messages, variance, cheats, variance)
    chosen = np.sort(order[: len(messages) - f])
    assert combined(several, messages, weights, variance) == pytest.approx(
        messages[chosen].mean(axis=0)
    )


@given(SEEDS, st.sampled_from([0.5, 1.0, 3.0]))
def test_norm_bounding_shortens_what_is_long_for_its_noise(seed, factor):
    messages, weights, variance = market(seed)
    ours = combined(
        robust_rules.create("norm-bounding", factor=factor), messages, weights, variance
    )
    assert ours == pytest.approx(slow_rules.norm_bounding(messages, weights, variance, factor))


@pytest.mark.parametrize("name", NAMES)
def test_one_message_is_delivered_as_it_is(name):
    message = np.array([[3.0, -1.0]])
    rule = robust_rules.create(name)
    assert combined(rule, message, [1.0], [2.0]) == pytest.approx(message[0])


def test_in_many_coordinates_the_geometric_median_of_honest_messages_is_their_weighted_sum():
    messages, _, variance = market(1, n=30, dimension=4000)
    weights = 1.0 / variance
    weights /= weights.sum()
    ours = combined(robust_rules.create("geometric-median"), messages, weights, variance)
    plain = weighted_sum(weights, messages)
    assert np.square(ours - plain).sum() < 1e-2 * np.square(plain - 1.0).sum()


def test_a_geometric_median_may_be_a_message_and_may_lie_on_a_line():
    rule = robust_rules.create("geometric-median")
    star = np.array([[0.0, 0.0], [1.0, 0.0], [-0.5, 0.866], [-0.5, -0.866]])
    assert combined(rule, star, np.full(4, 0.25), np.ones(4)) == pytest.approx([0, 0])
    line = np.array([[0.0], [1.0], [2.0], [50.0]])
    assert 1.0 <= combined(rule, line, np.full(4, 0.25), np.ones(4))[0] <= 2.0
    twice = np.array([[5.0, 5.0], [5.0, 5.0], [0.0, 0.0], [9.0, 0.0]])
    found = combined(rule, twice, np.full(4, 0.25), np.ones(4))
    assert found == pytest.approx([5.0, 5.0])


NEAR_TIES = [10.0**-k for k in range(1, 13)]


@pytest.mark.parametrize("below", NEAR_TIES)
def test_a_message_just_too_light_to_be_the_geometric_median_is_told_from_it(below):
    weight = np.sqrt(3.0) * (1.0 - below)  # at the root of three the first message is the median
    weights = np.array([weight, 1.0, 1.0])
    weights /= weights.sum()
    around = np.eye(3) - np.eye(3)[0]  # the first is zero, so that numbers near it have all digits
    for tolerance in (1e-7, 1e-12):
        rule = robust_rules.create("geometric-median", tolerance=tolerance)
        ours = combined(rule, around, weights, np.ones(3))
        assert slow_rules.geometric_median_gap(ours, around, weights) <= tolerance * (1 + 1e-3)
    there = combined(rule, np.eye(3), weights, np.ones(3))
    slow = slow_rules.geometric_median_of_three_axes(weight)
    assert there == pytest.approx(slow, abs=1e-11)
    assert there - np.eye(3)[0] == pytest.approx(ours, abs=1e-15)


@given(SEEDS, st.sampled_from(NEAR_TIES), st.sampled_from([1e-7, 1e-10]))
def test_near_ties_of_any_messages_end_with_a_proof(seed, below, tolerance):
    rng = np.random.default_rng(seed)
    n, dimension = int(rng.integers(3, 12)), int(rng.choice([2, 5, 60]))
    points, weights = rng.normal(size=(n, dimension)), rng.uniform(0.1, 1.0, n)
    points[0] = 0.0  # numbers near it have all digits
    pull = weights[1:] @ (points[1:] / np.linalg.norm(points[1:], axis=1)[:, None])
    weights[0] = np.linalg.norm(pull) * (1.0 - below)
    found = geometric_median(points, weights, tolerance, 1000)
    assert found.gap <= tolerance
    slow = slow_rules.geometric_median_gap(found.point, points, weights)
    assert slow <= tolerance * (1 + 1e-3) + 1e-13


def test_a_geometric_median_that_ends_early_states_how_far_it_may_be_from_the_minimum():
    messages, weights, variance = market(3, n=9, dimension=3)
    counts = weights > 0
    points, pull = messages[counts], standardised(weights, variance)[counts]
    least = geometric_median(points, pull, 1e-12, 1000)
    lengths = [pull @ np.linalg.norm(points - least.point, axis=1)]
    gaps = [least.gap]
    for iterations in (3, 1):
        early = geometric_median(points, pull, 1e-12, iterations)
        lengths.append(pull @ np.linalg.norm(points - early.point, axis=1))
        gaps.append(early.gap)
        assert 1e-12 < (lengths[-1] - lengths[0]) / lengths[-1] <= early.gap
        rule = robust_rules.create("geometric-median", tolerance=1e-12, iterations=iterations)
        assert combined(rule, messages, weights, variance) == pytest.approx(early.point)
    assert gaps == sorted(gaps)


def test_noise_that_is_known_decides_who_krum_trusts():
    rng = np.random.default_rng(0)
    variance = np.array([1.0] * 6 + [400.0] * 6)
    messages = rng.normal(size=(12, 50)) * np.sqrt(variance / 50)[:, None]
    chosen = combined(robust_rules.create("krum"), messages, np.full(12, 1 / 12), variance)
    assert np.square(chosen).sum() < 4.0


def test_multi_krum_finds_a_message_that_is_long_for_its_noise_among_noisier_ones():
    rng = np.random.default_rng(4)
    variance = np.array([1.0] * 10 + [400.0] * 10)
    messages = rng.normal(size=(20, 200)) * np.sqrt(variance / 200)[:, None]
    messages[:2] *= 8.0  # shorter than what the noisy owners send
    weights = 1.0 / variance / (1.0 / variance).sum()
    rule = robust_rules.create("multi-krum", cheats=0.1)
    honest = weights[2:] @ messages[2:] / weights[2:].sum()
    assert combined(rule, messages, weights, variance) == pytest.approx(honest)


def test_krum_keeps_away_from_a_crowd_of_cheats_smaller_than_it_allows():
    rng = np.random.default_rng(1)
    messages = rng.normal(size=(20, 10))
    messages[:4] = 30.0
    for name in ("krum", "multi-krum"):
        ours = combined(robust_rules.create(name), messages, np.full(20, 0.05), np.full(20, 10.0))
        assert np.linalg.norm(ours) < 10.0


def test_distances_keep_their_digits_far_from_zero():
    rng = np.random.default_rng(2)
    points = 1e6 + 1e-3 * rng.normal(size=(7, 5))
    points[3] = points[4]
    slow = np.array([[np.square(a - b).sum() for b in points] for a in points])
    assert squared_distances(points) == pytest.approx(slow, rel=1e-6)
    assert squared_distances(points)[3, 4] == 0.0


def test_messages_without_noise_are_weighed_as_they_are():
    assert standardised(np.array([0.2, 0.8]), np.array([0.0, 3.0])) == pytest.approx([0.2, 0.8])


@pytest.mark.parametrize(
    ("messages", "weights", "variance", "complaint"),
    [
        ([1.0, 2.0], [1.0], [1.0], "shape"),
        ([[1.0], [np.nan]], [0.5, 0.5], [1.0, 1.0], "finite"),
        ([[1.0], [1e200]], [0.5, 0.5], [1.0, 1.0], "at most"),
        ([[1.0], [2.0]], [0.5, 0.6], [1.0, 1.0], "sum to 1"),
        ([[1.0], [2.0]], [0.5, 0.5], [1.0], "variance must be of shape"),
        ([[1.0], [2.0]], [0.5, 0.5], [1.0, np.inf], "variance must be finite"),
    ],
)
def test_what_is_no_market_is_refused(messages, weights, variance, complaint):
    with pytest.raises(InputError, match=complaint):
        combined(robust_rules.create("krum"), messages, weights, variance)
