"""The page that computes a round again does so, and notices a number that does not follow."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.docs.test_docs import blocks
from tests.support.sealed_json import without_hashes

BEGIN, *REST = blocks("docs/recomputing-a-round.md", "python")


def execute(code, names):
    exec(compile(code, "recomputing-a-round.md", "exec"), names)


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """The names of the page after its first block, which makes the run."""
    monkeypatch.chdir(tmp_path)
    names = {}
    execute(BEGIN, names)
    return names


def test_the_page_computes_a_round_again(begun, capsys):
    for block in REST:
        execute(block, begun)
    assert "round 12: accuracy" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "column"),
    [
        ("events/kind=bid", "value"),
        ("events/kind=allocation", "payment"),
        ("events/kind=decision", "value"),
        ("events/kind=payment", "amount"),
        ("events/kind=weight", "weight"),
        ("events/kind=delivery", "error_bound"),
        ("events/kind=gradient", "norm"),
        ("events/kind=delivery", "true_error"),
        ("events/kind=update", "loss"),
        ("events/kind=update", "accuracy"),
        ("ledger.parquet", "earned"),
    ],
)
def test_the_page_notices_other_numbers(begun, file, column):
    path = begun["run"].path / file
    path = path if path.suffix else path / "part-00000.parquet"
    table = pq.read_table(path)
    other = pa.array([1.01 * value for value in table.column(column).to_pylist()])
    pq.write_table(table.set_column(table.column_names.index(column), column, other), path)
    without_hashes(begun["run"].path)  # else no reader takes the file
    with pytest.raises(AssertionError):
        execute("".join(REST), begun)
