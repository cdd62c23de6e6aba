"""Small files stay small: what a file would take is known before it is unpacked."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.storage import untrusted_files
from flmarket_sim.storage.atomic_files import write_parquet
from flmarket_sim.storage.parquet_pages import frame_of
from flmarket_sim.storage.untrusted_files import check_parquet, read_parquet, rows_of

ROWS = 300_000
BOMBS = {
    "one value many times": pa.array([0] * ROWS),
    "a long text many times": pa.array(["x" * 3000] * (ROWS // 100)),
    "a row of many values": pa.array([[0.0] * ROWS]),
    "no values": pa.nulls(ROWS, pa.float64()),
}


@pytest.fixture
def little(monkeypatch):
    """Files of ours take a megabyte, and not more by their size."""
    monkeypatch.setattr(untrusted_files, "SMALL_FILE", 2**20)
    monkeypatch.setattr(untrusted_files, "RATIO", 1)


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_of_many_values_is_refused_and_memory_stays(tmp_path, little, name):
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"a": BOMBS[name]}), path, compression="zstd")
    assert path.stat().st_size < 40_000
    before = pa.total_allocated_bytes()
    pool = pa.default_memory_pool()
    with pytest.raises(InputError, match=r"bomb\.parquet would take"):
        read_parquet(path)
    assert pa.total_allocated_bytes() <= before + 2**20
    assert pool.bytes_allocated() <= before + 2**20


def test_what_the_footer_says_about_sizes_is_not_believed(tmp_path, little):
    """The size in the footer of this bomb is small, and it is refused all the same."""
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"a": pa.array([[0.0] * ROWS])}), path, compression="zstd")
    content, true = path.read_bytes(), pq.read_metadata(path).row_group(0).column(0)
    size = true.total_uncompressed_size
    assert size < 2**20, "the footer alone would let this file through"
    with pytest.raises(InputError, match="would take"):
        check_parquet(path, pa.schema([("a", pa.list_(pa.float64()))]))
    assert content == path.read_bytes()


def test_the_bound_holds_for_files_of_all_kinds(tmp_path):
    columns = {
        "numbers": pa.array(range(5000)),
        "texts": pa.array([f"text {i % 17}" for i in range(5000)]),
        "names": pa.array(["a", "b"] * 2500).dictionary_encode(),
        "lists": pa.array([[1.0] * (i % 5) for i in range(5000)]),
        "gaps": pa.array([None, 1.5] * 2500),
    }
    for number, options in enumerate(
        ({}, {"use_dictionary": False}, {"data_page_version": "2.0"}, {"row_group_size": 700})
    ):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table(columns), path, write_page_checksum=True, **options)
        table = read_parquet(path)
        assert table.equals(pa.table(columns))
        assert frame_of(path, pq.read_metadata(path), checksums=True).memory >= table.nbytes


def test_pages_have_checksums_that_both_readers_verify(tmp_path):
    path, schema = tmp_path / "a.parquet", pa.schema([("a", pa.float64())])
    table = pa.table({"a": pa.array([0.5, 1.5, 2.5])})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[content.index(b"\x00\x00\x00\x00\x00\x00\xf8\x3f")] ^= 1  # in the value 1.5
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.parquet cannot be read.*(checksum|CRC)"):
        read_parquet(path)
    with pytest.raises(InputError, match=r"a\.parquet cannot be read.*checksum"):
        check_parquet(path, schema, checksums=True)


def test_a_column_that_nobody_knows_is_refused_by_name(tmp_path):
    pq.write_table(pa.table({"a": [1], "weather": [2]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet has a column 'weather'"):
        read_parquet(tmp_path / "a.parquet", pa.schema([("a", pa.int64())]), known_only=True)


def test_a_date_that_python_does_not_have_is_refused_by_name(tmp_path):
    far = pa.table({"day": pa.array([2**31 - 1], pa.date32())})
    with pytest.raises(InputError, match=r"a\.parquet has a value that Python cannot hold"):
        rows_of(tmp_path / "a.parquet", far)


def test_a_text_that_is_no_text_is_refused_by_name(tmp_path):
    wrong = pa.array([b"\xff\xfe"]).view(pa.string())
    pq.write_table(pa.table({"a": wrong}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet cannot be read"):
        read_parquet(tmp_path / "a.parquet")


def test_a_table_without_rows_is_read(tmp_path):
    empty = pa.table({"run": pa.array([], pa.string()), "seed": pa.array([], pa.int64())})
    write_parquet(tmp_path / "empty.parquet", empty)
    assert read_parquet(tmp_path / "empty.parquet", empty.schema).equals(empty)
