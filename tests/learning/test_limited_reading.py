"""A small archive that stands for a large file is refused before it fills the memory."""

import gzip
import hashlib
import http.server
import io
import threading
import tracemalloc
import zipfile

import pytest

from flmarket_sim.errors import DataError
from flmarket_sim.learning import data_files
from flmarket_sim.learning.data_files import DataFile, FileSource
from flmarket_sim.learning.limited_reading import read_limited
from flmarket_sim.plugins import registry

TEXT = b"some records\n"
SHA = hashlib.sha256(TEXT).hexdigest()
BOMB = 64 * 2**20  # bytes that the archives here unpack to
URL = "https://nowhere.example/made"


def most_memory(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def zipped(*names, content):
    for name in reversed(names):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr(name, content)
        content = buffer.getvalue()
    return content


@pytest.fixture(scope="module")
def bomb():
    return gzip.compress(bytes(BOMB), 1)


@pytest.fixture
def served():
    """A server that answers every request with the bytes in its list; returns list and address."""
    answers = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answers[0])

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield answers, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_gzipped_file_is_unpacked_up_to_its_known_size(tmp_path, bomb):
    file, path = DataFile("made.txt", SHA, URL, size=len(TEXT)), tmp_path / "made.txt.gz"
    path.write_bytes(bomb)

    def refuse():
        with pytest.raises(DataError, match=r"\.gz is not the made\.txt we know.*13 bytes"):
            data_files.read(path, file)

    assert most_memory(refuse) < BOMB / 8
    path.write_bytes(gzip.compress(TEXT))
    assert data_files.read(path, file) == TEXT


def test_a_plain_file_is_read_up_to_its_known_size(tmp_path):
    file, path = DataFile("made.txt", SHA, URL, size=len(TEXT)), tmp_path / "made.txt"
    path.write_bytes(TEXT + b"more")
    with pytest.raises(DataError, match="more than the 13 bytes"):
        data_files.read(path, file)


@pytest.mark.parametrize("names", [("made.txt",), ("inner.zip", "made.txt")])
def test_a_fetched_archive_is_unpacked_up_to_the_known_size(tmp_path, monkeypatch, served, names):
    monkeypatch.setenv("FLMARKET_CACHE", str(tmp_path / "cache"))
    answers, base = served
    file = DataFile("made.txt", SHA, URL, names, size=len(TEXT))
    answers[:] = [zipped(*names, content=bytes(BOMB))]

    def refuse():
        with pytest.raises(DataError, match=r"made\.txt holds more than the 13 bytes"):
            data_files.fetch("made", "made", file, base)

    assert most_memory(refuse) < BOMB / 8
    assert not (tmp_path / "cache").exists()
    answers[:] = [zipped(*names, content=TEXT)]
    assert data_files.fetch("made", "made", file, base).read_bytes() == TEXT


def test_a_download_ends_when_it_is_too_long(served):
    answers, base = served
    answers[:] = [b"x" * 10_000]
    with pytest.raises(DataError, match="more than the 13 bytes"):
        DataFile("made.txt", SHA, URL, size=len(TEXT)).content("made", base)


def test_what_has_exactly_the_known_size_is_read():
    content, digest = read_limited(io.BytesIO(TEXT), len(TEXT), "it")
    assert content == TEXT and digest == SHA


def test_every_file_that_is_known_has_a_known_size():
    for name in registry.datasets.names():
        source = registry.datasets.get(name)
        for file in source.files if isinstance(source, FileSource) else ():
            assert file.size < data_files.LARGEST, f"{name}: {file.name}"
            if path := data_files.find(source.folder, file):
                assert len(data_files.read(path, file)) == file.size
