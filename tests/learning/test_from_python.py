"""Data sets from arrays, frames and torch: the same features and the same checks as from files."""

import numpy as np
import polars
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Streams

pandas = pytest.importorskip("pandas")


def numbers(count=50):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(count, 3))
    return x, (x[:, 0] + rng.normal(size=count) > 0).astype(int)


def frame():
    x, y = numbers()
    made = pandas.DataFrame(x, columns=["a", "b", "c"])
    made["group"] = ["u", "v"] * 25
    made["y"] = np.where(y == 1, "yes", "no")
    return made


def test_arrays_frames_and_files_give_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y = numbers()
    plain = frame().drop(columns="group")
    arrays = fm.Dataset.from_arrays(x, y, classes=["no", "yes"])
    assert arrays.sha256() == fm.Dataset.from_pandas(plain, "y").sha256()
    assert arrays.sha256() == fm.Dataset.from_pandas(polars.from_pandas(plain), "y").sha256()
    frame().to_csv("frame.csv", index=False)
    source = registry.datasets.create("csv", path="frame.csv", label="y")
    assert source.load(Streams(0)).sha256() == fm.Dataset.from_pandas(frame(), "y").sha256()


def test_torch_data_sets_are_flattened_and_keep_their_class_names():
    torch = pytest.importorskip("torch")
    x, y = numbers(40)
    images = torch.tensor(x.reshape(40, 1, 3))

    class Pictures(torch.utils.data.Dataset):
        classes = ("off", "on")

        def __len__(self):
            return 40

        def __getitem__(self, i):
            return images[i], int(y[i])

    data = fm.Dataset.from_torch(Pictures())
    assert data.classes == ("off", "on") and data.train_x.shape[1] == 3
    whole = fm.Dataset.from_torch(torch.utils.data.TensorDataset(images, torch.tensor(y)))
    assert np.allclose(whole.train_x, data.train_x, atol=1e-6) and whole.classes == ("0", "1")
    own = fm.Dataset.from_torch(Pictures(), Pictures())
    assert len(own.train_y) == len(own.test_y) == 40
    with pytest.raises(InputError, match="needs a length"):
        fm.Dataset.from_torch(iter([]))


def test_test_records_can_be_given():
    x, y = numbers()
    data = fm.Dataset.from_arrays(x[:30], y[:30], (x[30:], y[30:]), standardise="none")
    assert np.allclose(data.test_x, x[30:], atol=1e-6)
    other = fm.Dataset.from_pandas(frame()[:30], "y", frame()[30:], ignore=["group"])
    assert other.test_x.shape == (20, 3)


def test_owners_have_their_records():
    x, y = numbers()
    who = np.array(["ann", "bob", "cat", "dan", "eve"])[np.arange(50) % 5]
    data = fm.Dataset.from_arrays(x, y, owners=who, standardise="none")
    assert data.owner_names == ("ann", "bob", "cat", "dan", "eve")
    for row, owner in zip(data.train_x, data.owners, strict=True):
        at = int(np.flatnonzero(np.isclose(x[:, 0], row[0], atol=1e-6))[0])
        assert who[at] == data.owner_names[owner]
    assert data.owner_counts().sum() == len(data.train_y)


@pytest.mark.parametrize(
    ("x", "y", "options", "message"),
    [
        (np.ones(5), np.ones(5), {}, r"shape \(records, features\)"),
        (np.ones((4, 2)), [0, 1, 0], {}, r"must have shape \(4,\)"),
        ([[1.0], [np.nan]] * 10, [0, 1] * 10, {}, r"missing values in 'x\[:, 0\]' \(10\)"),
        ([["a"]] * 4, [0, 1] * 2, {}, "must be numbers"),
        (np.ones((4, 1)), [0, 1, 0, 1], {"test": 1.5}, "share between 0 and 1"),
        (np.ones((4, 1)), [0, 1, 0, 1], {"test": "x"}, "share or test records"),
        (np.ones((10, 1)), [0, 1] * 5, {"classes": ["a"]}, "no number of the 1 classes"),
        (np.ones((10, 1)), [0, 1] * 5, {"missin": "drop"}, "did you mean 'missing'"),
        (np.ones((10, 1)), [0, 1] * 5, {"missing": "mena"}, "did you mean 'mean'"),
        (np.ones((10, 1)), [0, 1] * 5, {"owners": [1]}, r"the owners of the arrays must have"),
        (np.ones((0, 1)), [], {}, "are empty"),
    ],
)  # fmt: skip
def test_bad_arrays_are_refused_in_one_sentence(x, y, options, message):
    with pytest.raises(InputError, match=message):
        fm.Dataset.from_arrays(x, y, **options)


def test_a_data_set_with_wrong_owners_is_refused():
    x, y = numbers()
    good = fm.Dataset.from_arrays(x, y)
    parts = (good.train_x, good.train_y, good.test_x, good.test_y, good.classes)
    with pytest.raises(InputError, match="one whole number for each"):
        fm.Dataset(*parts, np.zeros(3, int), ("a",)).check()
    with pytest.raises(InputError, match="each of these must hold a record"):
        fm.Dataset(*parts, np.zeros(len(good.train_y), int), ("a", "b")).check()
