"""The check of data sets finds each way to break the contract."""

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.testing import NotADataset, check_dataset


class Good:
    """Two classes of four records each, held by two owners."""

    name = "good"

    def shape(self):
        return 2, 2

    def class_counts(self, streams):
        return np.array([4, 4])

    def owner_counts(self, streams):
        return self.load(streams).owner_counts()

    def load(self, streams):
        y = np.tile([0, 1], 4)
        x = np.column_stack([y, 1 - y]).astype(np.float32)
        return fm.Dataset(x, y, x[:2], y[:2], ("a", "b"), np.arange(8) // 4, ("ann", "bob"))


def broken(**changes):
    """The good data set with other methods."""
    return type("Broken", (Good,), changes)


def with_data(change):
    def load(self, streams):
        data = Good.load(self, streams)
        parts = {key: getattr(data, key) for key in ("train_x", "train_y", "test_x", "test_y")}
        parts["classes"] = data.classes
        change(parts)
        return fm.Dataset(**parts)

    return broken(load=load)


def forgetful(self, streams):
    data = Good.load(self, streams)
    data.train_x[0, 0] = np.random.default_rng().random()
    return data


def test_good_data_pass_and_are_returned():
    assert len(check_dataset(Good).train_y) == len(check_dataset(Good()).train_y) == 8


@pytest.mark.parametrize(
    ("dataset", "complaint"),
    [
        (broken(load=forgetful), "two loads with the same seed differ"),
        (broken(class_counts=lambda self, streams: np.array([5, 3])), r"class_counts gives \[5, 3"),
        (broken(shape=lambda self: (3, 2)), r"shape gives \(3, 2\)"),
        (broken(owner_counts=lambda self, streams: np.ones((2, 2), int)), "owner_counts does not"),
        (broken(load=lambda self, streams: [1]), "load must return a Dataset, got list"),
        (broken(load=lambda self, streams: 1 / 0), "it failed: ZeroDivisionError"),
        (with_data(lambda p: p.update(classes=("a", "b", "c"))), "no training records of 'c'"),
        (with_data(lambda p: p.update(test_y=p["test_y"] * 0)), "no test records of 'b'"),
        (with_data(lambda p: p.update(train_x=p["train_x"] * 1e4)), "features reach 10000"),
        (with_data(lambda p: p.update(train_x=p["train_x"] * np.nan)), "features must be finite"),
    ],
)
def test_each_breach_is_named(dataset, complaint):
    with pytest.raises(NotADataset, match=complaint):
        check_dataset(dataset)


def test_the_built_in_data_sets_keep_the_contract():
    for name in ("digits", "synthetic", "breast-cancer"):
        check_dataset(name)
