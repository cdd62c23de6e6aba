"""Null distributions against simulations of the worst honest gradients."""

import numpy as np
import pytest

from flmarket_sim.checks.height_law import full_heights, low_height
from flmarket_sim.checks.length_law import length_tails
from flmarket_sim.checks.near_law import near_chance
from flmarket_sim.checks.two_means import lower_cluster
from flmarket_sim.plugins.registry import perturbations

DIMENSION, COUNT = 6, 2_000
NAMES = ("laplace", "priv-unit", "proj-unit", "duchi-l2", "duchi-linf", "gaussian", "piecewise")


def made_as(name):
    return perturbations.create(name, **({"size": 3} if name == "proj-unit" else {}))


def released(made, gradient, loss, count=COUNT, seed=0):
    rng = np.random.default_rng(seed)
    rows = np.tile(made.prepare(np.asarray(gradient, float)[None], 1.0), (count, 1))
    return made.release(rows, np.full(count, loss), rng, 1.0)


def gradients():
    axis = np.eye(DIMENSION)[0]
    return {"zeros": 0 * axis, "axis": 99 * axis, "corner": 99 * np.ones(DIMENSION)}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("loss", [0.5, 8.0])
def test_no_gradient_has_shorter_or_longer_messages_more_often(name, loss):
    made = made_as(name)
    for gradient in gradients().values():
        sent = released(made, gradient, loss)
        squared = np.einsum("ij,ij->i", sent, sent)
        for tail in length_tails(made, np.full(COUNT, loss), DIMENSION, 1.0, squared):
            for level in (0.01, 0.05, 0.3):
                assert (tail <= level).mean() <= level + 4 * np.sqrt(level / COUNT)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("loss", "alignment"), [(0.5, 0.0), (8.0, 0.0), (2.0, 0.4), (8.0, 1.0)])
def test_no_gradient_of_this_alignment_lies_lower_more_often(name, loss, alignment):
    made = made_as(name)
    direction = np.eye(DIMENSION)[0]
    across = np.eye(DIMENSION)[1]
    full = full_heights(made, direction[None], 1.0)[0]
    rest = {"laplace": 1 - alignment, "piecewise": 1.0, "duchi-linf": 1.0}
    far = rest.get(name, np.sqrt(1 - alignment**2))
    for gradient in (alignment * full * direction + far * across, full * direction):
        sent = released(made, gradient, loss)
        directions = np.tile(direction, (COUNT, 1))
        losses = np.full(COUNT, loss)
        chance = low_height(made, losses, 1.0, directions, sent[:, 0], alignment)
        for level in (0.01, 0.05, 0.3):
            assert (chance <= level).mean() <= level + 4 * np.sqrt(level / COUNT)


@pytest.mark.parametrize("name", ["laplace", "gaussian", "priv-unit", "duchi-l2", "proj-unit"])
@pytest.mark.parametrize("alignment", [0.4, 1.0])
def test_the_chance_of_a_height_is_that_of_the_gradient_with_this_alignment(name, alignment):
    made = made_as(name)
    direction, across = np.eye(DIMENSION)[:2]
    far = 1 - alignment if name == "laplace" else np.sqrt(1 - alignment**2)
    sent = released(made, alignment * direction + far * across, 2.0, 20_000)
    for height in np.quantile(sent[:, 0], [0.05, 0.5]):
        one = np.array([height])
        chance = low_height(made, np.full(1, 2.0), 1.0, direction[None], one, alignment)
        assert chance[0] == pytest.approx((sent[:, 0] <= height).mean(), abs=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_fresh_messages_come_near_to_a_known_one_no_more_often(name):
    made = made_as(name)
    for gradient in gradients().values():
        known = released(made, gradient, 2.0, 1, seed=1)
        sent = released(made, gradient, 2.0)
        distance = np.sqrt(np.square(sent - known).sum(axis=1))
        rows = np.tile(known, (COUNT, 1))
        chance = near_chance(made, 2.0, 1.0, distance, rows)
        for level in (0.01, 0.05, 0.3):
            assert (chance <= level).mean() <= level + 4 * np.sqrt(level / COUNT)


def test_two_means_on_a_line_is_the_best_of_all_partitions():
    rng = np.random.default_rng(4)
    for _ in range(30):
        values = np.round(rng.normal(size=7), int(rng.integers(1, 4)))

        def within(lower, values=values):
            parts = (values[lower], values[~lower])
            return sum(np.square(part - part.mean()).sum() for part in parts if len(part))

        masks = (np.arange(1, 2**7 - 1)[:, None] >> np.arange(7)) & 1 == 1
        assert within(lower_cluster(values)) == pytest.approx(min(within(m) for m in masks))
    assert not lower_cluster(np.ones(4)).any()
