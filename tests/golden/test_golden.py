"""Reference markets that must not change from commit to commit.

If a change of results is intended, write the tables again with
`python -m tests.golden.test_golden`, and give the reason in the commit.
"""

import json
import tempfile
from pathlib import Path

import pytest

import flmarket_sim as fm

HERE = Path(__file__).parent
REFERENCES = {
    "quickstart": ["scenarios/quickstart.toml"],
    "unreliable": ["scenarios/studies/unreliable.toml", "rounds=15"],
}
COLUMNS = (
    "buyer, round, ended, budget, bids, winners, accepted, delivered, spent, privacy_sold, "
    "error_bound, true_error, accuracy"
)


def table(name: str) -> list[dict]:
    path, *overrides = REFERENCES[name]
    scenario = fm.load_scenario(HERE.parents[1] / path, overrides)
    with tempfile.TemporaryDirectory() as folder:
        fm.run(scenario, Path(folder) / "run")
        found = fm.sql(
            Path(folder) / "run", f"select {COLUMNS} from rounds order by seq"
        ).to_pylist()
    return [
        {
            key: str(v) if isinstance(v, float) and not abs(v) < float("inf") else v
            for key, v in row.items()
        }
        for row in found
    ]


@pytest.mark.parametrize("name", REFERENCES)
def test_a_reference_market_has_not_changed(name):
    expected = json.loads((HERE / f"{name}.json").read_text())
    found = table(name)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        for column, value in theirs.items():
            if isinstance(value, float):
                # gradients and evaluation use float32, which another CPU may round differently
                assert ours[column] == pytest.approx(
                    value, rel=1e-4, abs=0.01 if column == "accuracy" else 0
                )
            else:
                assert ours[column] == value, f"{column} of round {ours['round']}"


if __name__ == "__main__":
    for reference in REFERENCES:
        rows = [json.dumps(row) for row in table(reference)]
        (HERE / f"{reference}.json").write_text("[\n" + ",\n".join(rows) + "\n]\n")
