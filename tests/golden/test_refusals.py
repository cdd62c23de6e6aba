"""What people read when something is refused must not change from commit to commit.

If a change is intended, write the texts again with `python -m tests.golden.test_refusals`.
"""

import json
import re
from pathlib import Path

import pytest

from flmarket_sim.errors import FlmarketError
from tests.golden.refusals import REFUSALS

TABLE = Path(__file__).parent / "refusals.json"


def refusal(name: str) -> list[str]:
    """The kind of the error and the first line of its text, without numbers of cvxpy's symbols."""
    with pytest.raises(FlmarketError) as caught:
        REFUSALS[name]()
    text = re.sub(r"\b(param|var)\d+", r"\1", str(caught.value).partition("\n")[0])
    return [type(caught.value).__name__, text]


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_says_what_it_said(name):
    assert refusal(name) == json.loads(TABLE.read_text(encoding="utf-8"))[name]


if __name__ == "__main__":
    rows = [f"{json.dumps(name)}: {json.dumps(refusal(name))}" for name in REFUSALS]
    TABLE.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
