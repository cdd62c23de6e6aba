"""What no test can see: bounds against exact tests, and exact tests against simulations."""

import numpy as np
import pytest

from flmarket_sim.checks.any_gradient import under_any_gradient
from flmarket_sim.checks.honest_payment import (
    stake_against_noise,
    stake_of_any_perturbation,
    stake_of_caps,
)
from flmarket_sim.checks.shifted_laplace import (
    best_power,
    curves,
    distance,
    one_coordinate_distance,
    one_coordinate_power,
)
from flmarket_sim.checks.undetectable import (
    cap_chances,
    largest_distance,
    more_gaussian_noise_power,
    more_laplace_noise_power,
    most_power,
    two_events_power,
    weaker_cap_chance,
)
from flmarket_sim.errors import InputError
from flmarket_sim.perturbation.priv_unit import PrivUnit

LOSSES = (0.5, 1.0, 2.0, 8.0)
LEVELS = np.linspace(0.0, 1.0, 41)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_distance_is_the_largest_gap_between_power_and_level(loss):
    gap = (most_power(np.linspace(0, 1, 100_001), loss) - np.linspace(0, 1, 100_001)).max()
    assert gap == pytest.approx(np.tanh(loss / 2), abs=1e-4) and gap <= largest_distance(loss)
    assert largest_distance(loss, 0.01) > largest_distance(loss)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dimension", [1, 10, 650])
def test_no_exact_test_exceeds_the_general_bound(loss, dimension):
    bound = most_power(LEVELS, loss) + 1e-9
    assert (two_events_power(LEVELS, *cap_chances(loss, dimension)) <= bound).all()
    assert (one_coordinate_power(LEVELS, loss / 2) <= bound).all()
    if dimension < 650:
        of = curves(np.full(dimension, loss / 2 / dimension), 2**14)
        assert (best_power(of, LEVELS).least <= bound).all()


def test_the_best_test_of_two_events_is_what_a_search_through_all_tests_finds():
    honest, cheat = 0.7, 0.2
    inside, outside = np.meshgrid(np.linspace(0, 1, 201), np.linspace(0, 1, 201))
    level = honest * inside + (1 - honest) * outside  # chances of accusing in and outside
    power = cheat * inside + (1 - cheat) * outside
    for alpha in (0.05, 0.3, 0.6):
        best = power[level <= alpha + 1e-12].max()
        assert best == pytest.approx(two_events_power(alpha, honest, cheat), abs=5e-3)
        assert best <= two_events_power(alpha, honest, cheat) + 1e-9


@pytest.mark.parametrize("loss", [0.5, 8.0])
def test_caps_have_the_chances_that_releases_have(loss):
    p, q = cap_chances(loss, 6, "unit")
    made, rng = PrivUnit("unit"), np.random.default_rng(0)
    axis = np.tile(np.eye(6)[0], (20_000, 1))
    noise = made.prepare(rng.normal(size=axis.shape))
    for gradients, chance in ((axis, p), (noise, q)):
        sent = made.release(gradients, np.full(len(axis), loss), rng)
        assert (sent[:, 0] >= 1.0).mean() == pytest.approx(chance, abs=0.015)


def test_one_coordinate_has_a_formula_and_the_lattice_agrees():
    for shift in (0.25, 1.0, 4.0):
        of = curves([shift], 2**14)
        exact = one_coordinate_power(LEVELS, shift)
        found = best_power(of, LEVELS)
        assert (found.least <= exact + 1e-9).all() and (exact <= found.most + 1e-9).all()
        assert (found.most - found.least).max() < 1e-3
        between = distance(of)
        assert between.least <= one_coordinate_distance(shift) <= between.most


@pytest.mark.parametrize("shifts", [np.full(8, 0.5), np.array([0.1, 0.7, 1.3])])
def test_the_lattice_holds_what_a_simulation_finds(shifts):
    rng = np.random.default_rng(1)
    noise = rng.laplace(size=(100_000, len(shifts)))
    honest = rng.laplace(size=noise.shape) + shifts

    def ratio(x):
        return (np.abs(x) - np.abs(x - shifts)).sum(axis=1)

    of = curves(shifts, 2**14)
    between = distance(of)
    simulated = (ratio(noise) < 0).mean() - (ratio(noise) > 0).mean()
    assert between.least - 0.01 < simulated < between.most + 0.01
    assert between.most - between.least < 5e-3
    threshold = np.quantile(ratio(honest), 0.2)
    level = (ratio(honest) <= threshold).mean()
    power = best_power(of, level)
    assert power.least[0] - 0.01 < (ratio(noise) <= threshold).mean() < power.most[0] + 0.01


@pytest.mark.parametrize("shifts", [[2.0, 2.0], [0.5] * 8, [3.0, 0.5, 0.5], [0.01] * 400])
def test_one_coordinate_is_easier_to_tell_from_noise_than_many_of_the_same_sum(shifts):
    assert distance(curves(shifts, 2**15)).most <= one_coordinate_distance(np.sum(shifts)) + 1e-3


@pytest.mark.parametrize("dimension", [1, 20])
def test_more_noise_than_sold_is_seen_by_its_length(dimension):
    rng = np.random.default_rng(2)
    for power, draw, statistic in (
        (more_laplace_noise_power, rng.laplace, np.abs),
        (more_gaussian_noise_power, rng.standard_normal, np.square),
    ):
        noise = statistic(draw(size=(40_000, dimension))).sum(axis=1)
        more = statistic(1.5 * draw(size=(40_000, dimension))).sum(axis=1)
        found = (more > np.quantile(noise, 0.9)).mean()
        assert found == pytest.approx(power(0.1, 1.5, dimension), abs=0.02)
        assert power(0.1, 1.0, dimension) == pytest.approx(0.1)


def test_a_weaker_cap_has_the_ratio_of_what_was_sent():
    p, q = cap_chances(2.0, 10)
    assert weaker_cap_chance(2.0, 2.0, 10) == pytest.approx(p)
    assert weaker_cap_chance(2.0, 0.0, 10) == pytest.approx(q)
    weaker = weaker_cap_chance(2.0, 1.0, 10)
    assert weaker / q / ((1 - weaker) / (1 - q)) == pytest.approx(np.e)
    with pytest.raises(InputError, match="at most what she sold"):
        weaker_cap_chance(2.0, 3.0, 10)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_chance_under_any_gradient_holds_for_the_cap_of_every_gradient(loss):
    """The worst gradients for an event are those whose cap it is."""
    p, q = cap_chances(loss, 9, "unit")
    outside_other = (1 - p) / (1 - q)  # the least density; the largest is p / q
    assert under_any_gradient(outside_other * q, loss) >= p * (1 - 1e-9)
    assert under_any_gradient(1.0, loss) == 1.0 and under_any_gradient(0.0, loss) == 0.0


def test_honesty_needs_a_stake_above_its_cost_and_far_above_it_at_small_losses():
    stakes = [stake_of_any_perturbation(loss) for loss in LOSSES]
    assert stakes == pytest.approx(1 / np.tanh(np.array(LOSSES) / 2))
    assert stake_of_any_perturbation(0.1) > 20 and stake_against_noise(0.0) == np.inf
    for loss in LOSSES:
        p, q = cap_chances(loss, 10)
        assert stake_of_caps(loss, 10) >= stake_against_noise(p - q) >= stakes[LOSSES.index(loss)]


def test_the_stake_of_caps_is_the_least_at_which_no_deviation_pays():
    loss, dimension, value = 2.0, 10, 0.7
    p, _ = cap_chances(loss, dimension)
    stake = stake_of_caps(loss, dimension) * value * loss

    def best_gain(at_stake):
        sent = np.linspace(0.0, loss, 400, endpoint=False)
        chance = np.array([weaker_cap_chance(loss, s, dimension) for s in sent])
        return (value * (loss - sent) - at_stake * (p - chance)).max()

    assert best_gain(1.001 * stake) <= 0 < best_gain(0.99 * stake)


def test_what_is_no_level_and_no_distance_is_refused():
    with pytest.raises(InputError, match="level"):
        most_power(1.5, 1.0)
    with pytest.raises(InputError, match="total variation"):
        stake_against_noise(1.5)
    with pytest.raises(InputError, match="nothing to test"):
        curves([0.0])
    with pytest.raises(InputError, match="at least 1"):
        more_laplace_noise_power(0.1, 0.5, 3)
