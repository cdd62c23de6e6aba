"""Warnings about money and privacy that mean little."""

import math

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.market.market_warnings import LARGEST_MONEY, scenario_warnings
from flmarket_sim.owners.population import create_population
from flmarket_sim.privacy.loss_meaning import CUSTOMARY_LIMIT, beyond_custom, odds_factor
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.scenario_file import build_scenario
from tests.support.command_line import flmarket, json_output

PRIVATE = {
    "rounds": 4,
    "data": {"name": "synthetic", "records": 4000},
    "owners": {"count": 50, "privacy_budget": [0.5, 2.0]},
    "model": {"name": "none"},
}


def market(owners=None, **changes):
    return build_scenario(PRIVATE | {"owners": PRIVATE["owners"] | (owners or {})} | changes)


def test_a_private_market_with_ordinary_money_has_none(tmp_path):
    assert scenario_warnings(market()) == []
    assert fm.run(market(), tmp_path / "run").summary()["warnings"] == []


def test_money_of_many_digits_is_called_absurd(tmp_path):
    scenario = market({"privacy_budget": [40.0, 60.0], "families": ["linear", "exponential"]})
    run = fm.run(scenario, tmp_path / "run")
    budgets = run.rounds["budget"].to_pylist()
    assert max(budgets) > 1e25 > LARGEST_MONEY
    for found in (scenario_warnings(scenario), run.summary()["warnings"]):
        assert found[0].startswith("The money of this market is absurd")
        assert "leave 'exponential' out of owners.families" in found[0]
        assert found[1].startswith("An owner may lose e = ") and len(found) == 2


def test_above_the_largest_money_hundredths_are_lost():
    assert LARGEST_MONEY + 0.01 != LARGEST_MONEY
    assert 100 * LARGEST_MONEY + 1 == 100 * LARGEST_MONEY


def test_one_owner_who_is_dearer_than_all_others_makes_a_budget_absurd():
    mixed = {"families": ["linear", "exponential"]}
    found = scenario_warnings(market(mixed | {"privacy_budget": [18.0, 20.0]}))
    assert "times what a quarter of the owners ask" in found[0]
    calm = scenario_warnings(market(mixed | {"privacy_budget": [8.0, 9.0]}, rounds=1))
    assert calm == []
    rich = scenario_warnings(market({"families": ["linear"], "rate": [1e12, 1e12]}))
    assert rich[0].endswith("Lower owners.privacy_budget or owners.rate.")


@pytest.mark.parametrize("budget", [{"factor": [0.1, 5000.0]}, {"amount": 1e9}])
def test_a_budget_that_never_runs_out_is_named(budget):
    (found,) = scenario_warnings(market(budget=budget))
    assert found.startswith("The budget of buyer is up to ")
    assert f"Lower budget.{next(iter(budget))}" in found
    assert scenario_warnings(market(budget={"amount": 1e3})) == []


def test_the_times_of_an_amount_are_those_of_the_asked_owners():
    scenario = market(budget={"amount": 1e9})
    people = create_population(scenario, Streams(0))
    everything = people.value(np.arange(50), people.privacy_budget).sum()
    (found,) = scenario_warnings(scenario)
    times = float(found.split("up to ")[1].split(" times")[0])
    assert times == pytest.approx(1e9 / (everything * 10 / 50), rel=0.05)


def test_all_sales_of_an_owner_are_added_up(tmp_path):
    often = market(rounds=60)
    run = fm.run(often, tmp_path / "run")
    sold = np.array(run.ledger["privacy_sold"].to_pylist())
    (found,) = run.summary()["warnings"]
    many = int((sold > CUSTOMARY_LIMIT).sum())
    assert found.startswith(f"{many} of 50 owners lost more than e = 10 of privacy over all rounds")
    assert f"one of them {sold.max():.3g}." in found
    (before,) = scenario_warnings(often)
    assert before.startswith("An owner is asked 12 times on average")
    limited = market({"lifetime_budget": 10.0}, rounds=60)
    assert scenario_warnings(limited) == []
    assert fm.run(limited, tmp_path / "limited").summary()["warnings"] == []


def test_the_factor_is_the_one_of_the_definition():
    assert odds_factor(math.log(300)) == "exp(5.7) = 3e+02"
    assert odds_factor(800.0) == "exp(800)"
    assert "exp(12) = 1.6e+05" in beyond_custom(12.0)


def test_commands_print_them_on_stderr_and_run_json_keeps_them(tmp_path):
    wide = ("--set", "owners.privacy_budget=[11,12]", "--set", "rounds=1")
    checked = flmarket("validate", "quickstart", *wide)
    assert "Warning: An owner may lose e = 12 " in checked.stderr and checked.returncode == 0
    ran = flmarket("run", "quickstart", *wide, "--out", tmp_path / "run")
    assert ran.stderr.count("Warning: ") == 1 and "Warning" not in ran.stdout
    assert fm.Run(tmp_path / "run").info["warnings"][0] in ran.stderr
    assert "Warning: An owner may lose" in flmarket("resume", tmp_path / "run").stderr
    found = json_output("validate", "quickstart", "--json", *wide)["warnings"]
    assert found[0].startswith("An owner may lose e = 12 ")


def test_validate_warns_without_the_files_of_a_data_set(tmp_path):
    changes = ("--set", "data.name=nsl-kdd", "--set", "owners.privacy_budget=20")
    result = flmarket("validate", "quickstart", *changes, env={"FLMARKET_DATA": str(tmp_path)})
    assert result.returncode == 0 and "Warning: An owner may lose e = 20 " in result.stderr
