"""Tables become TOML that reads back as the same tables."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flmarket_sim.scenario.scenario_file import read_toml
from flmarket_sim.scenario.shipped import read_text, scenario_names
from flmarket_sim.workbench.toml_text import toml_text

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=8)
VALUES = st.recursive(
    st.booleans() | st.integers(-(2**60), 2**60) | NAMES
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_any_tables_read_back_as_they_were(tables):
    assert tomllib.loads(toml_text(tables)) == tables


@pytest.mark.parametrize("name", scenario_names())
def test_shipped_scenarios_read_back_as_they_were(name):
    tables = read_toml(read_text(name), name)
    assert tomllib.loads(toml_text(tables)) == tables
