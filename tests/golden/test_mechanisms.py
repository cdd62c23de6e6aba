"""What mechanisms do in reference markets must not change from commit to commit.

Whether a mechanism is right is tested elsewhere, against its definition. Here any change shows.
Of an array the table keeps its shape, how many of its numbers are finite, and the sum of these, the
first times 1, the second times 2, and so on. If a change of results is intended, write the table
again with `python -m tests.golden.test_mechanisms`, and give the reason in the commit.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.golden.mechanisms import REFERENCES as MECHANISMS
from tests.golden.searches import SEARCHES

REFERENCES = MECHANISMS | SEARCHES
TABLE = Path(__file__).parent / "mechanisms.json"
CLOSE = 1e-8  # relative to the sum of sizes: other processors round differently


def digest(found: Any) -> Any:
    """Arrays as [shape, finite numbers, weighted sum, sum of sizes]; everything else as it is."""
    if isinstance(found, dict):
        return {key: digest(value) for key, value in found.items()}
    if found is None or isinstance(found, str | bool):
        return found
    try:
        array = np.asarray(found, np.float64)
    except (ValueError, TypeError):
        return [digest(part) for part in found]
    if array.dtype != np.float64 or any(part is None for part in np.ravel(found)):
        return [digest(part) for part in found]
    numbers = array.ravel() * np.arange(1, array.size + 1)
    finite = numbers[np.isfinite(numbers)]
    sums = (float(f"{total:.12g}") for total in (finite.sum(), np.abs(finite).sum()))
    return [list(array.shape), len(finite), *sums]


def differences(ours: Any, theirs: Any, place: str = "") -> list[str]:
    """The places where two digests differ by more than rounding."""
    if isinstance(theirs, dict):
        if ours.keys() != theirs.keys():
            return [f"{place}: {sorted(ours.keys() ^ theirs.keys())}"]
        return [d for key in theirs for d in differences(ours[key], theirs[key], f"{place}/{key}")]
    if isinstance(theirs, list) and theirs and isinstance(theirs[-1], float):
        alike = ours[:2] == theirs[:2]
        near = alike and abs(ours[2] - theirs[2]) <= CLOSE * (theirs[3] + 1e-300)
        return [] if near else [f"{place}: {ours}, not {theirs}"]
    if isinstance(theirs, list) and len(ours) == len(theirs):
        parts = enumerate(zip(ours, theirs, strict=True))
        return [d for number, (a, b) in parts for d in differences(a, b, f"{place}/{number}")]
    return [] if ours == theirs else [f"{place}: {ours}, not {theirs}"]


@pytest.mark.parametrize("name", REFERENCES)
def test_a_mechanism_does_in_reference_markets_what_it_did(name):
    expected = json.loads(TABLE.read_text(encoding="utf-8"))[name]
    found = json.loads(json.dumps(digest(REFERENCES[name]())))
    assert differences(found, expected) == []


def test_a_change_of_one_number_shows():
    before = digest({"a": np.array([1.0, 2.0]), "b": [None, "text", [3.0, np.inf]]})
    for after in (
        {"a": np.array([2.0, 1.0]), "b": [None, "text", [3.0, np.inf]]},
        {"a": np.array([1.0, 2.000001]), "b": [None, "text", [3.0, np.inf]]},
        {"a": np.array([1.0, 2.0]), "b": [None, "other", [3.0, np.inf]]},
        {"a": np.array([1.0, 2.0]), "b": [None, "text", [3.0, 4.0]]},
        {"a": np.array([1.0, 2.0]), "b": [0.0, "text", [3.0, np.inf]]},
    ):
        assert len(differences(digest(after), before)) == 1
    assert differences(before, before) == []


if __name__ == "__main__":
    rows = [
        f"{json.dumps(name)}: {json.dumps(digest(make()))}" for name, make in REFERENCES.items()
    ]
    TABLE.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
