import gzip
import hashlib
import http.server
import threading

import numpy as np
import pytest

from flmarket_sim.errors import DataError
from flmarket_sim.learning import data_files
from flmarket_sim.learning.bank import Bank
from flmarket_sim.learning.data_files import DataFile
from flmarket_sim.learning.nsl_kdd import TRAIN_COUNTS, NslKdd
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Streams


def test_nsl_kdd_is_the_papers(nsl_kdd):
    assert nsl_kdd.train_x.shape == (125973, 122) and nsl_kdd.test_x.shape == (22544, 122)
    assert np.bincount(nsl_kdd.train_y).tolist() == list(TRAIN_COUNTS)
    assert np.bincount(nsl_kdd.test_y).tolist() == [9711, 7460, 2421, 2885, 67]
    assert nsl_kdd.train_x.min() == 0 and nsl_kdd.train_x.max() == 1
    assert nsl_kdd.test_x.min() >= 0 and nsl_kdd.test_x.max() <= 1


def test_the_second_load_reads_the_cache_and_gives_the_same(nsl_kdd, monkeypatch):
    monkeypatch.setattr(data_files, "read", lambda *_: pytest.fail("the source was read again"))
    again = NslKdd().load(Streams(0))
    assert (again.train_x == nsl_kdd.train_x).all() and again.classes == nsl_kdd.classes


def test_bank_has_51_features_and_known_counts():
    try:
        data = Bank().load(Streams(0))
    except DataError as error:
        pytest.skip(str(error))
    assert data.train_x.shape == (36170, 51) and data.test_x.shape == (9041, 51)
    assert np.bincount(data.train_y).tolist() == Bank().class_counts(Streams(0)).tolist()


@pytest.mark.parametrize("name", ["digits", "synthetic"])
def test_built_in_data_is_whole_and_scaled(name):
    source = registry.datasets.create(name)
    data = source.load(Streams(3))
    assert np.bincount(data.train_y).tolist() == source.class_counts(Streams(3)).tolist()
    assert data.train_x.min() >= 0 and data.train_x.max() <= 1
    assert data.train_x.dtype == np.float32 and len(data.test_x) == len(data.test_y)


def test_synthetic_data_has_the_asked_shape_skew_and_difficulty():
    def made(**options):
        return registry.datasets.create("synthetic", records=3000, features=7, classes=3, **options)

    counts = made(skew=1.0).class_counts(Streams(0))
    assert counts[0] / counts[2] == pytest.approx(3.0, rel=0.01)
    for separation, low, high in ((0.0, 0.0, 0.5), (8.0, 0.98, 1.0)):
        data = made(separation=separation).load(Streams(0))
        centres = np.stack([data.train_x[data.train_y == c].mean(axis=0) for c in range(3)])
        nearest = ((data.test_x[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        assert low <= (nearest == data.test_y).mean() <= high


TEXT = b"some records\n"
FILE = DataFile("made.txt", hashlib.sha256(TEXT).hexdigest(), "https://nowhere.example/made.txt")


def test_a_file_is_found_gzipped_and_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("FLMARKET_DATA", str(tmp_path))
    (tmp_path / "made.txt.gz").write_bytes(gzip.compress(TEXT))
    path = data_files.require("made", "made", FILE)
    assert data_files.read(path, FILE) == TEXT
    (tmp_path / "made.txt.gz").write_bytes(gzip.compress(b"other"))
    with pytest.raises(DataError, match="SHA-256"):
        data_files.read(path, FILE)
    (tmp_path / "made.txt.gz").write_bytes(b"not gzip")
    with pytest.raises(DataError, match="cannot be read"):
        data_files.read(path, FILE)


def test_a_missing_file_says_where_it_was_looked_for_and_what_to_do():
    with pytest.raises(DataError, match=r"flmarket data fetch made.*FLMARKET_DATA"):
        data_files.require("made", "made", FILE)


def test_fetching_keeps_what_is_right_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setenv("FLMARKET_CACHE", str(tmp_path / "cache"))
    answers = [b"wrong", TEXT]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answers.pop(0))

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    with pytest.raises(DataError, match="nothing was stored"):
        data_files.fetch("made", "made", FILE, base)
    assert not (tmp_path / "cache").exists()
    assert data_files.fetch("made", "made", FILE, base).read_bytes() == TEXT
    server.shutdown()
    assert (
        data_files.fetch("made", "made", FILE, base).read_bytes() == TEXT
    )  # found, not fetched again
