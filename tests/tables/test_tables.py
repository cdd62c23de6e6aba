"""Tables fit terminals without breaking a number, and go to files that other programs read."""

import re

import pyarrow.parquet as pq
import pytest

import flmarket_sim as fm
from flmarket_sim.tables import ResultTable
from flmarket_sim.tables.cells import cell_of, number
from flmarket_sim.tables.table_text import fitted

ROWS = [
    {
        "auction": f"a-mechanism-with-a-long-name-{k}",
        "error": 1.23456 * 10.0**k,
        "error_low": 1.2 * 10.0**k,
        "error_high": 1.3 * 10.0**k,
        "money": 7.0 * 10.0 ** (4 * k),
        "sales": 12345 * k,
        "note": "unsettled",
    }
    for k in range(5)
]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 200])
def test_a_table_fits_and_breaks_no_number(width):
    table = fitted(ROWS, width=width)
    lines = table.text.splitlines()
    assert len(lines) == len(ROWS) + 1
    assert all(len(line) <= width for line in lines)
    whole = fitted(ROWS).text
    for word in re.findall(r"[\d.,e+]*\d[\d.,e+]*", table.text):
        assert word in whole
    assert ("note" in table.left_out) == ("unsettled" not in table.text)


def test_numbers_beyond_a_million_million_are_scientific():
    assert number(9.99e11) == "999,000,000,000"
    assert number(1.5e12) == number(1500000000000) == "1.50e+12"
    assert number(float("nan")) == number(None) == ""
    assert number(-0.0) == "0"


def test_an_interval_has_the_digits_that_tell_its_ends_apart():
    row = {"x": 1.0004, "x_low": 1.0001, "x_high": 1.0007}
    assert cell_of(row, "x") == "1.00040 [1.00010, 1.00070]"
    assert cell_of({"x": 3.0, "x_low": None, "x_high": None}, "x") == "3"


@pytest.mark.parametrize("suffix", [".csv", ".md", ".tex", ".parquet"])
def test_files_hold_the_table(tmp_path, suffix):
    place = ResultTable.of(ROWS).save(tmp_path / f"table{suffix}")
    if suffix == ".parquet":
        assert pq.read_table(place).to_pylist() == ROWS
        return
    text = place.read_text()
    assert text.count("a-mechanism") == len(ROWS)
    assert ("error_low" in text) == (suffix == ".csv")


def test_latex_escapes_names(tmp_path):
    place = ResultTable.of([{"name": r"50%_of #1 {a} \x", "n": 3}]).save(tmp_path / "t.tex")
    assert r"50\%\_of \#1 \{a\} \textbackslash{}x & 3 \\" in place.read_text()


def test_an_unknown_suffix_is_refused(tmp_path):
    with pytest.raises(fm.FlmarketError, match=r"\.csv, \.md, \.tex, \.parquet"):
        ResultTable.of(ROWS).save(tmp_path / "table.docx")


def test_rows_go_to_pandas_and_polars():
    table = ResultTable.of(ROWS)
    assert table.to_pandas().shape == table.to_polars().shape == (5, 7)
    assert table.rows == ROWS
