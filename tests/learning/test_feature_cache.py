"""Cached features are those that were made, or they are made anew."""

import hashlib
import json
import shutil
import warnings

import numpy as np
import pytest

from flmarket_sim.errors import FlmarketWarning
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.learning.feature_cache import CONTENT, cached
from tests.support.commands_here import called

MADE = Dataset(
    np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1]), np.eye(2), np.array([0, 1]),
    ("no", "yes"), np.array([0, 0, 1, 1, 2, 2]), ("a", "b", "c"),
)  # fmt: skip


class Maker:
    """Counts how often features are made."""

    def __init__(self):
        self.times = 0

    def __call__(self):
        self.times += 1
        return MADE


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("FLMARKET_CACHE", str(tmp_path / "cache"))
    (tmp_path / "made.csv").write_text("1,2\n")
    return tmp_path / "made.csv"


@pytest.fixture
def folder(source, tmp_path):
    cached("made", 1, [source], Maker())
    return next((tmp_path / "cache" / "features").iterdir())


def same(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("train_x", "train_y", "test_x", "test_y", "classes", "owners", "owner_names")
    )


def edited(folder):
    features = np.load(folder / "train_x.npy")
    features[0, 0] = 99.0
    np.save(folder / "train_x.npy", features)


def relabelled(folder):
    content = json.loads((folder / CONTENT).read_text())
    content["parts"]["train_x"] = "0" * 64
    (folder / CONTENT).write_text(json.dumps(content))


DAMAGES = {
    "an array was edited": edited,
    "an array is lost": lambda folder: (folder / "owners.npy").unlink(),
    "an array is a directory": lambda folder: (
        (folder / "classes.npy").unlink(),
        (folder / "classes.npy").mkdir(),
    ),
    "a hash was edited": relabelled,
    "a number": lambda folder: (folder / CONTENT).write_text("5"),
    "a list": lambda folder: (folder / CONTENT).write_text("[]"),
    "an empty object": lambda folder: (folder / CONTENT).write_text("{}"),
    "a list of parts": lambda folder: (folder / CONTENT).write_text('{"parts": [], "sources": {}}'),
    "no parts": lambda folder: (folder / CONTENT).write_text('{"parts": {}, "sources": {}}'),
    "no text": lambda folder: (folder / CONTENT).write_bytes(b"\xff\xfe\x00"),
}


def test_a_second_load_reads_the_cache(source, folder):
    make = Maker()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same(cached("made", 1, [source], make), MADE) and make.times == 0


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_changed_cache_is_made_anew_with_a_word(source, folder, damage):
    DAMAGES[damage](folder)
    make = Maker()
    with pytest.warns(FlmarketWarning, match="made anew"):
        assert same(cached("made", 1, [source], make), MADE) and make.times == 1
    assert same(cached("made", 1, [source], make), MADE) and make.times == 1, "it is right again"


def test_the_cache_of_an_earlier_version_is_made_anew(source, folder):
    edited(folder)
    (folder / CONTENT).unlink()
    make = Maker()
    assert same(cached("made", 1, [source], make), MADE) and make.times == 1


def test_the_cache_names_the_hash_of_its_sources(source, folder):
    stored = json.loads((folder / CONTENT).read_text())["sources"]
    assert stored == {str(source): hashlib.sha256(source.read_bytes()).hexdigest()}


def test_data_check_says_what_was_changed(source, folder):
    shutil.copytree(folder, folder.with_name("digits-0123"))
    edited(folder.with_name("digits-0123"))
    wrong = called("data", "check", "digits")
    assert wrong.code == 1 and "features there were changed (train_x.npy)" in wrong.err
    assert called("data", "check", "synthetic").code == 0, "another data set"
