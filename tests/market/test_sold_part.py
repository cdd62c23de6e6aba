"""An owner who sells on a part of her records sells a random part of them."""

import numpy as np

from flmarket_sim.market.cohort_gradients import sold_part
from flmarket_sim.randomness import Streams

OFFERED = np.array([5, 400, 3])
NAMES = np.array([8, 2, 30])


def part(sold, seed=0, key=(0, 0)):
    return sold_part(OFFERED, np.array(sold), Streams(seed), NAMES, key)


def test_who_sells_on_everything_sells_in_the_old_order():
    assert (np.arange(408)[part([5, 400, 3])] == np.arange(408)).all()


def test_a_part_has_the_right_number_of_different_records_of_its_owner():
    places = part([5, 40, 1])
    assert (places[:5] == np.arange(5)).all() and len(places) == 46
    hers = places[5:45]
    assert len(set(hers.tolist())) == 40 and hers.min() >= 5 and hers.max() < 405
    assert 405 <= places[45] < 408


def test_a_part_is_from_all_of_her_records_and_differs_from_round_to_round():
    hers = np.concatenate([part([5, 40, 3], key=(number, 0))[5:45] for number in range(60)])
    assert len(np.unique(hers)) > 390
    assert abs(hers.mean() - 204.5) < 12
    assert (part([5, 40, 3]) == part([5, 40, 3])).all()
