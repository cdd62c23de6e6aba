"""What the study of cheats counts where nobody looks for them, and how its tables read."""

import pytest

from docs import findings
from flmarket_sim.scenario.scenario_file import load_scenario
from flmarket_sim.studies.cheating import Cheating
from tests.support.paths import ROOT

SMALL = ["data.name=synthetic", "rounds=2", "model.evaluate_every=2"]


@pytest.fixture(scope="module")
def study():
    return load_scenario(ROOT / "scenarios/studies/cheating.toml", SMALL)


def gains(study, auction, check):
    work = {"seed": 1, "auction": auction, "loss": 1.0, "check": check, "share": 0.2}
    rows = Cheating.measure(study, work | {"cheats": ["nothing-but-noise", "sign-flip"]})
    return {row["cheat"]: row for row in rows}


def test_without_a_check_a_cheat_gains_the_cost_that_she_saves(study):
    """Pay-as-bid pays exactly the cost, so noise gains all of the pay."""
    found = gains(study, "pay-as-bid", "none")
    assert found["nothing-but-noise"]["gain"] == pytest.approx(1.0)
    assert found["sign-flip"]["gain"] == found["honest"]["gain"] == 0.0
    assert {row["honest_pay"] for row in found.values()} == {1.0}
    more = gains(study, "all-in-critical", "none")["nothing-but-noise"]["gain"]
    assert 0.1 < more < 0.99


def test_a_check_of_which_nothing_follows_changes_no_gain(study):
    silent = study.model_copy(update={"check": study.check.model_copy(update={"consequences": ()})})
    for cheat, row in gains(silent, "all-in-critical", "variance").items():
        without = gains(study, "all-in-critical", "none")[cheat]
        assert row["gain"] == pytest.approx(without["gain"]), cheat


def test_the_scenario_has_rows_without_a_check(study):
    assert "none" in study.study.options["checks"]


def test_the_table_of_prices_has_the_pay_of_honest_owners_under_each_check():
    cells = {"auction": "clock", "gain": "0.1 [0.0, 0.2]"}
    rows = [
        cells | {"check": check, "privacy loss": loss, "cheat": cheat, "honest pay": pay}
        for check, loss, cheat, pay in (
            ("none", "2", "honest", "1.000 [1.000, 1.000]"),
            ("variance", "2", "honest", "0.912 [0.805, 1.021]"),
            ("variance", "2", "stale", "0.999 [0.999, 0.999]"),
            ("variance", "8", "honest", "0.5"),
        )
    ]
    assert findings.by_price(rows) == [
        {"auction": "clock", "check": "variance", "e = 2": "0.91 [0.81, 1.02]", "e = 8": "0.50"}
    ]
    page = "<!-- made by: docs.findings cheating, price -->\n<!-- end -->\n"
    made = findings.page(page)
    assert made.count("| pay-as-bid |") == 6 and "nothing-but-noise" not in made
    assert findings.page(made) == made
