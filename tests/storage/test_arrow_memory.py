"""What Arrow's threads let go of is never an object of Python."""

import re
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import flmarket_sim
from flmarket_sim.storage.arrow_memory import arrow_reader

PACKAGE = Path(flmarket_sim.__file__).parent
READS = 200


class Bytes(bytearray):
    """Bytes whose end is noticed."""


def parquet():
    sink = pa.BufferOutputStream()
    columns = {f"c{i}": np.arange(2000) * 0.5 for i in range(30)}
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


def released_elsewhere(reader_of, content):
    """How often a thread of the decoder, and not this one, let go of the bytes."""
    here, ends = threading.get_ident(), []
    for _ in range(READS):
        held = Bytes(content)
        weakref.finalize(held, lambda: ends.append(threading.get_ident()))
        reader = reader_of(held)
        del held
        pq.ParquetFile(reader).read()
        del reader
    return sum(end != here for end in ends)


def test_decoders_let_go_of_pythons_bytes_in_their_own_threads_unless_arrow_has_a_copy():
    content = parquet()
    assert released_elsewhere(pa.BufferReader, content) > 0  # why this module is there
    assert released_elsewhere(arrow_reader, content) == 0


def test_a_copy_keeps_nothing_of_the_bytes_and_reads_as_they_do():
    content = b"".join([b"a,b\n", b"1,2\n" * 100])
    before = sys.getrefcount(content)
    reader = arrow_reader(content)
    assert sys.getrefcount(content) == before
    assert reader.read() == content
    assert pyarrow.csv.read_csv(arrow_reader(content)).num_rows == 100
    assert arrow_reader(b"").read() == b""


def test_nothing_else_in_the_package_hands_bytes_to_a_decoder():
    direct = re.compile(r"BufferReader\(|read_csv\(\s*io\.|PythonFile\(")
    found = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if direct.search(path.read_text())
    ]
    assert found == ["storage/arrow_memory.py"]
