"""The vector bound is a bound of the error, in every shipped market that learns."""

import numpy as np
import pytest

from flmarket_sim.errors import DataError
from flmarket_sim.learning.dataset import load_data
from flmarket_sim.market.simulation import rounds_only
from flmarket_sim.scenario.scenario_file import load_scenario
from tests.support.paths import ROOT

ROUNDS = 12
SAMPLING = 0.06  # the mean of so many rounds is this near to its expectation
SCENARIOS = [
    path
    for path in sorted((ROOT / "scenarios").rglob("*.toml"))
    if load_scenario(path).model.name != "none"
]


def rounds_of(path, *settings):
    if path.stem == "hardened":
        pytest.importorskip("opendp")
    scenario = load_scenario(path, [f"rounds={ROUNDS}", "model.evaluate_every=1000", *settings])
    try:
        data = load_data(scenario)
    except DataError as error:
        pytest.skip(str(error).splitlines()[0])
    return [row for row in rounds_only(scenario, data) if row["valid"]]


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_mean_true_error_lies_between_half_of_the_vector_bound_and_all_of_it(path):
    rows = rounds_of(path)
    for buyer in {row["buyer"] for row in rows}:
        own = [row for row in rows if row["buyer"] == buyer]
        error, bound = (
            np.mean([row[key] for row in own]) for key in ("true_error", "vector_bound")
        )
        assert 0.5 <= error / bound <= 1.0 + SAMPLING, buyer


def test_the_papers_bound_is_off_by_hundreds():
    rows = rounds_of(ROOT / "scenarios/paper/iid.toml")
    error, bound = (
        np.mean([row[key] for row in rows]) for key in ("true_error", "coordinate_bound")
    )
    assert error / bound > 100
    assert all(row["error_bound"] == row["coordinate_bound"] for row in rows)
    assert {row["error_kind"] for row in rows} == {"coordinate"}


@pytest.mark.parametrize("name", ["priv-unit", "duchi-l2", "laplace", "proj-unit", "gaussian"])
def test_the_vector_bound_holds_for_every_perturbation(name):
    path = ROOT / "scenarios/quickstart.toml"
    rows = rounds_of(path, f"perturbation={name}", "model.learning_rate=0.001")
    assert {row["error_kind"] for row in rows} == {"vector"}
    ratio = np.mean([row["true_error"] for row in rows]) / np.mean(
        [r["vector_bound"] for r in rows]
    )
    assert 0.5 <= ratio <= 1.0 + SAMPLING
