"""What a round of large gradients holds in memory: counted allocations, not seconds."""

import tracemalloc

import numpy as np
import torch

from flmarket_sim.aggregation.weighted_sum import COLUMNS, weighted_sum
from flmarket_sim.learning import partitions
from flmarket_sim.learning.partitions import split_classes
from flmarket_sim.learning.torch_model import TorchModel
from flmarket_sim.market.simulation import rounds_only
from flmarket_sim.perturbation.laplace import Laplace
from flmarket_sim.plugins.registry import datasets
from flmarket_sim.privacy import Release, create_noise
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.scenario_file import build_scenario


def peak(work):
    """Bytes that `work` had allocated through Python and numpy at its worst moment."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_weighted_sum_is_the_product_with_all_gradients_stacked():
    rng = np.random.default_rng(0)
    for count, dimension in (
        (1, 7),
        (3, COLUMNS),
        (10, COLUMNS + 5),
        (37, 3 * COLUMNS + 1),
        (2, 2 * COLUMNS - 1),
    ):
        gradients, weights = list(rng.laplace(size=(count, dimension))), rng.random(count)
        np.testing.assert_allclose(
            weighted_sum(weights, gradients), weights @ np.stack(gradients), rtol=0, atol=1e-13
        )


def test_a_weighted_sum_and_clipping_copy_no_round_of_gradients():
    gradients = np.random.default_rng(0).laplace(size=(50, 200_000))
    assert peak(lambda: weighted_sum(np.ones(50), list(gradients))) < 0.4 * gradients.nbytes
    assert peak(lambda: released(gradients)) < 0.4 * gradients.nbytes


def test_gradients_are_clipped_in_their_own_memory_as_a_copy_is():
    gradients = np.random.default_rng(0).laplace(size=(7, 300_000))
    before = gradients.copy()
    copied = Laplace().prepare(gradients, 1.0)
    assert (gradients == before).all()
    placed = released(gradients)
    assert placed.prepared is gradients and (placed.prepared == copied).all()
    assert (placed.norms == np.abs(before).sum(axis=1)).all()


def released(gradients):
    """The gradients on the market's way out, prepared in their own memory."""
    noise = create_noise("simulation", Laplace(), 1.0, Streams(0))
    return Release(gradients, [1.0] * len(gradients), Laplace(), 1.0, noise)


def test_a_round_holds_each_gradient_twice_at_most():
    """A gradient is held twice: as computed, for the true error, and as sent.

    The market has 20 owners and 80,000 parameters.
    """
    table = {
        "rounds": 2,
        "data": {
            "name": "synthetic",
            "records": 600,
            "features": 19_999,
            "classes": 4,
            "test_records": 10,
        },
        "owners": {"count": 20, "partition": {"name": "shards"}},
        "market": {"bidders": 20},
        "budget": {"factor": [2.0, 2.0]},
    }
    scenario = build_scenario(table)
    source = datasets.create("synthetic", records=600, features=19_999, classes=4, test_records=10)
    data = source.load(Streams(scenario.seed))
    gradients = 20 * 80_000 * 8
    records = data.train_x.nbytes  # gathered for the round
    assert peak(lambda: rounds_only(scenario, data)) < 2.6 * gradients + records + 5e6


def test_classes_are_split_alike_however_many_records_are_dealt_at_once(monkeypatch):
    sizes = np.random.default_rng(1).integers(0, 60, 300)
    counts = np.bincount(np.arange(int(sizes.sum())) % 7)
    whole = split_classes(counts, sizes, np.random.default_rng(2))
    monkeypatch.setattr(partitions, "RECORDS", 50)
    assert (split_classes(counts, sizes, np.random.default_rng(2)) == whole).all()
    assert (whole.sum(axis=1) == sizes).all() and (whole.sum(axis=0) == counts).all()


class Wide(torch.nn.Sequential):
    def __init__(self, features, classes, hidden):
        super().__init__(
            torch.nn.Linear(features, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, classes)
        )


def test_a_wide_model_takes_fewer_records_at_once(monkeypatch):
    data = datasets.create("synthetic", records=400, features=4, classes=3, test_records=300).load(
        Streams(1)
    )
    model = TorchModel(Wide, 4, 3, {"hidden": 2000}, 0)
    seen = []
    monkeypatch.setattr("flmarket_sim.learning.torch_model.ELEMENTS", 2**18)
    model.module.register_forward_pre_hook(lambda module, args: seen.append(args[0].shape[-2]))
    found = model.evaluate(model.initial(), data)
    assert max(seen) * 2000 <= 2**18 and sum(seen) == 300 and 0 <= found.accuracy <= 1
