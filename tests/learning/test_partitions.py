import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flmarket_sim.errors import InputError
from flmarket_sim.learning.partitions import Dirichlet, Iid, Shards, deal

PARTITIONS = [Iid(minimum=2), Iid(sigma=0.5, minimum=1), Dirichlet(minimum=2), Shards(2), Shards(3)]


@given(
    st.sampled_from(PARTITIONS),
    st.integers(1, 20),
    st.lists(st.integers(0, 60), min_size=2, max_size=5),
    st.integers(0, 99),
)
def test_every_record_goes_to_exactly_one_owner(partition, owners, classes, seed):
    class_counts = np.array(classes) + 0
    class_counts[0] += 100
    rng = np.random.default_rng(seed)
    counts = partition.counts(class_counts, owners, rng)
    assert counts.shape == (owners, len(classes)) and (counts >= 0).all()
    assert counts.sum(axis=0).tolist() == class_counts.tolist()
    labels = rng.permutation(np.repeat(np.arange(len(classes)), class_counts))
    rows, offsets = deal(labels, counts, rng)
    assert sorted(rows) == list(range(len(labels)))
    for i in range(owners):
        mine = labels[rows[offsets[i] : offsets[i + 1]]]
        assert np.bincount(mine, minlength=len(classes)).tolist() == counts[i].tolist()


def test_iid_sizes_have_a_heavy_tail_and_a_minimum():
    sizes = Iid().counts(np.array([60000, 60000]), 1000, np.random.default_rng(0)).sum(axis=1)
    assert sizes.min() >= 10 and sizes.max() > 20 * np.median(sizes)


def test_iid_owners_have_the_classes_of_the_whole():
    counts = Iid(sigma=0.5).counts(np.array([90000, 10000]), 20, np.random.default_rng(0))
    assert counts[:, 1] / counts.sum(axis=1) == pytest.approx(0.1, abs=0.02)


def test_dirichlet_owners_differ_in_their_classes_and_have_a_minimum_of_the_largest():
    counts = Dirichlet().counts(np.array([60000, 40000]), 500, np.random.default_rng(0))
    share = counts[:, 1] / counts.sum(axis=1)
    assert counts[:, 0].min() >= 10 and share.std() > 0.2


def test_shards_are_equal_and_hold_few_classes():
    counts = Shards(2).counts(np.full(10, 100), 50, np.random.default_rng(0))
    assert (counts.sum(axis=1) == 20).all() and ((counts > 0).sum(axis=1) <= 2).all()


@pytest.mark.parametrize("partition", [Iid(), Dirichlet(), Shards(200)])
def test_too_few_records_are_said_to_be_too_few(partition):
    with pytest.raises(InputError, match="records"):
        partition.counts(np.array([50, 50]), 20, np.random.default_rng(0))
