"""The data sets inside packages, where they have been fetched; and breast cancer."""

import numpy as np
import pytest

from flmarket_sim.errors import DataError
from flmarket_sim.learning import adult, census_income
from flmarket_sim.learning.data_files import FileSource
from flmarket_sim.learning.dataset import KnownShape
from flmarket_sim.learning.package_archives import PackageFile
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Streams

PACKAGED = ("adult", "census-income", "letter", "mnist-5k")


@pytest.mark.parametrize(
    ("name", "options", "records", "shape"),
    [
        ("breast-cancer", {}, (456, 113), (30, 2)),
        ("letter", {}, (16_012, 3_988), (16, 26)),
        ("mnist-5k", {}, (4_000, 1_000), (784, 10)),
        ("adult", {}, (32_561, 16_281), (106, 2)),
        ("adult", {"owner": "occupation"}, (32_561, 16_281), (91, 2)),
        ("adult", {"owner": "country"}, (32_561, 16_281), (64, 2)),
        ("census-income", {"owner": "industry"}, (199_523, 99_762), (122, 2)),
    ],
)
def test_what_is_known_without_the_data_is_true_of_them(name, options, records, shape):
    source = registry.datasets.create(name, **options)
    assert isinstance(source, KnownShape) and source.shape() == shape
    counts = source.class_counts(Streams(0))
    assert counts.sum() == records[0] and len(counts) == shape[1]
    try:
        data = source.load(Streams(0)).check()
    except DataError as error:
        pytest.skip(str(error))
    assert (len(data.train_y), len(data.test_y)) == records
    assert (data.train_x.shape[1], len(data.classes)) == shape
    assert np.bincount(data.train_y).tolist() == counts.tolist()
    assert data.train_x.min() == 0 and data.train_x.max() == 1
    if owner := options.get("owner"):
        table = adult.TABLE if name == "adult" else census_income.TABLE
        owners = source.owner_counts(Streams(0))
        assert len(owners) == len(data.owner_names) == table.owners[owner]
        assert owners.sum() == records[0]


def test_the_texts_of_adult_become_plain_records():
    text = b"|1x3 Cross validator\n25, Private, <=50K.\n38, Private, >50K.\n\n"
    assert adult.plain(text) == b"25, Private, <=50K\n38, Private, >50K\n\n"


@pytest.mark.parametrize("name", PACKAGED)
def test_a_packaged_file_names_everything_that_is_checked(name):
    source = registry.datasets.get(name)
    assert isinstance(source, FileSource)
    for file in source.files:
        assert isinstance(file, PackageFile)
        assert len(file.sha256) == len(file.archive_sha256) == 64
        assert file.version in file.archive and 0 < file.size < 2**28
        assert file.archive_size < 2**25


@pytest.mark.parametrize("name", PACKAGED)
def test_absent_data_say_how_to_fetch_them(name, tmp_path, monkeypatch):
    monkeypatch.setenv("FLMARKET_CACHE", str(tmp_path))
    monkeypatch.delenv("FLMARKET_DATA", raising=False)
    with pytest.raises(DataError, match=f"flmarket data fetch {name}"):
        registry.datasets.create(name).load(Streams(0))
