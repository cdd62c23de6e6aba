"""What a decoder's threads let go of is memory of Arrow's own and never an object of Python."""

import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

import flmarket_sim
from flmarket_sim.storage.arrow_memory import arrow_reader

PACKAGE = Path(flmarket_sim.__file__).parent
CONTENT = b"a,b\n" + b"1,2\n" * 100


def test_a_copy_keeps_nothing_of_the_bytes_and_reads_as_they_do():
    content = bytes(bytearray(CONTENT))  # nobody else has it
    before = sys.getrefcount(content)
    direct = pa.BufferReader(content)
    assert sys.getrefcount(content) > before  # what a thread would have to give back
    del direct
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
