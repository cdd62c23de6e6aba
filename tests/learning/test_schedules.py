"""Learning rates by round, by their formulas; the mean of the models so far, by its weights."""

import math

import numpy as np
import pytest

from flmarket_sim.errors import ContractError
from flmarket_sim.learning.averaging import averaged
from flmarket_sim.learning.buyer_model import Evaluation, evaluation
from flmarket_sim.learning.schedules import create_schedule, learning_rate_at
from flmarket_sim.plugins import registry
from flmarket_sim.scenario.part import Plugin

ROUNDS = 20


def rates(name, rounds=ROUNDS, **options):
    schedule = create_schedule(Plugin(name=name, **options))
    return [learning_rate_at(schedule, 0.3, number, rounds) for number in range(rounds)]


@pytest.mark.parametrize(
    ("name", "options", "formula"),
    [
        ("constant", {}, lambda r: 0.3),
        ("cosine", {}, lambda r: 0.3 * (0.5 + 0.5 * math.cos(math.pi * r / 19))),
        ("cosine", {"final": 0.2}, lambda r: 0.3 * (0.2 + 0.4 * (1 + math.cos(math.pi * r / 19)))),
        ("inverse-sqrt", {}, lambda r: 0.3 * (r + 1) ** -0.5),
        ("step", {"every": 6}, lambda r: 0.3 * 0.5 ** (r // 6)),
        ("step", {"every": 1, "factor": 0.9}, lambda r: 0.3 * 0.9**r),
    ],
)
def test_a_schedule_is_its_formula(name, options, formula):
    expected = [formula(number) for number in range(ROUNDS)]
    assert rates(name, **options) == pytest.approx(expected, rel=1e-14, abs=1e-17)


def test_a_schedule_begins_with_the_learning_rate_and_cosine_ends_at_its_share():
    others = [(name, {}) for name in ("constant", "cosine", "inverse-sqrt")]
    for name, options in (*others, ("step", {"every": 5})):
        assert rates(name, **options)[0] == 0.3
        assert rates(name, rounds=1, **options) == [0.3], "a market of one round"
    assert rates("cosine", final=0.25)[-1] == pytest.approx(0.3 * 0.25)
    assert set(registry.BUILT_IN["schedule"]) == {"constant", "cosine", "inverse-sqrt", "step"}


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf])
def test_a_schedule_of_ones_own_must_give_a_finite_rate(value):
    schedule = type("Odd", (), {"name": "odd", "multiplier": lambda self, number, rounds: value})()
    with pytest.raises(ContractError, match=r"'odd' must give a finite number of at least 0"):
        learning_rate_at(schedule, 0.1, 3, 10)


def weights(rounds, share):
    """(rounds,) the weight of each model in the mean after so many rounds, oldest first."""
    models, mean = np.eye(rounds), np.zeros(rounds)
    for number in range(rounds):
        mean = averaged(mean, models[number], number + 1, share)
    return mean


@pytest.mark.parametrize("eta", [0, 1, 2, 3, 8])
def test_the_mean_weighs_models_by_rising_powers_of_their_round(eta):
    rounds = 30
    rising = [math.prod(range(s, s + eta)) for s in range(1, rounds + 1)]
    expected = np.array(rising, float) / sum(rising)
    np.testing.assert_allclose(weights(rounds, 2 / (eta + 2)), expected, rtol=1e-12, atol=0)


def test_a_share_of_1_is_the_plain_mean_and_a_tiny_one_the_latest_model():
    np.testing.assert_allclose(weights(25, 1.0), np.full(25, 1 / 25), rtol=1e-12)
    np.testing.assert_allclose(weights(25, 1e-9), np.eye(25)[-1], atol=1e-7)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.8, 1.0])
def test_the_mean_is_as_old_as_a_plain_mean_of_the_latest_share(share):
    """A mean of the latest share a of t models has the mean age a t / 2, but for the ends."""
    rounds = 2000
    ages = np.arange(rounds)[::-1]
    assert weights(rounds, share) @ ages == pytest.approx(share * rounds / 2, rel=0.02)
    assert weights(rounds, share).sum() == pytest.approx(1.0) and (weights(rounds, share) > 0).all()


def test_the_mean_does_not_count_the_model_before_the_first_round():
    first = np.array([3.0, -1.0])
    np.testing.assert_array_equal(averaged(np.full(2, 1e300), first, 1, 0.5), first)


def test_balanced_accuracy_is_the_mean_recall_of_classes_with_test_records():
    labels = np.array([0, 0, 0, 0, 1, 3])
    seen = evaluation(0.5, np.array([0, 0, 0, 1, 1, 0]), labels, 4)
    assert seen.accuracy == pytest.approx(4 / 6)
    assert seen.balanced_accuracy == pytest.approx((3 / 4 + 1 + 0) / 3)
    assert np.isnan(seen.recall[2])
    assert Evaluation(0.0, 1.0, np.array([1.0, 0.5])).balanced_accuracy == 0.75
