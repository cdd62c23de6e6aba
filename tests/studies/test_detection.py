"""The curves of power against false positives."""

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.checks.undetectable import most_power
from flmarket_sim.studies.cheating import check_table
from flmarket_sim.studies.detection import LEVELS, bound, power
from flmarket_sim.studies.study_run import find_out
from tests.support.paths import ROOT

SCENARIO = ROOT / "scenarios/studies/detection.toml"


def power_by_hand(honest, cheats, level):
    """Accuses the smallest p-values first, equal ones together, the last group by lot."""
    false = true = 0.0
    for value in sorted({*honest, *cheats}):
        more_false = sum(p == value for p in honest) / len(honest)
        more_true = sum(p == value for p in cheats) / len(cheats)
        if false + more_false > level + 1e-12:
            return true + more_true * (level - false) / more_false
        false, true = false + more_false, true + more_true
    return true


@pytest.mark.parametrize("seed", range(20))
def test_power_is_what_accusing_one_after_the_other_gives(seed):
    rng = np.random.default_rng(seed)
    steps = rng.integers(2, 40)  # few steps: many ties
    honest = rng.integers(0, steps, rng.integers(1, 60)) / steps
    cheats = rng.integers(0, steps, rng.integers(1, 60)) ** 2 / steps**2
    found = power(honest, cheats, np.array(LEVELS))
    assert found == pytest.approx([power_by_hand(honest, cheats, level) for level in LEVELS])


def test_a_check_that_knows_nothing_is_a_coin():
    assert power(np.ones(9), np.ones(4), np.array(LEVELS)) == pytest.approx(LEVELS)


def test_nobody_to_judge_is_no_power():
    assert np.isnan(power(np.array([]), np.ones(3), np.array(LEVELS))).all()


def test_the_bound_is_exact_for_privunit_and_by_the_loss_alone_otherwise():
    scenario = fm.load_scenario(SCENARIO)
    exact = bound(scenario, "nothing-but-noise", 2.0, 650)
    assert (exact < most_power(np.array(LEVELS), 2.0)).sum() >= len(LEVELS) - 1
    other = fm.load_scenario(SCENARIO, ["perturbation=laplace"])
    assert bound(other, "nothing-but-noise", 2.0, 650) == pytest.approx(most_power(LEVELS, 2.0))
    assert np.isnan(bound(scenario, "more-noise", 2.0, 650)).all()


def test_the_bound_of_noise_that_promises_less_has_its_delta():
    """At a loss of 0.1 and a delta of 0.2; by the loss alone the bound would be far too small."""
    settings = ['perturbation={name="gaussian", delta=0.2}']
    found = bound(fm.load_scenario(SCENARIO, settings), "nothing-but-noise", 0.1, 650)
    assert found == pytest.approx(most_power(LEVELS, 0.1, 0.2))
    assert found[2] > 0.3 > most_power(LEVELS, 0.1)[2]


def test_the_length_gives_more_noise_away_and_nothing_but_noise_not():
    settings = ["study.seeds=2", "study.losses=[1.0]", 'study.checks=["variance"]', "rounds=2"]
    settings += ["model.evaluate_every=2"]
    found = {}
    for cheat in ("more-noise", "nothing-but-noise"):
        rows = find_out(fm.load_scenario(SCENARIO, [*settings, f"study.cheat={cheat}"])).rows
        found[cheat] = [row["caught"] for row in rows]
    assert min(found["more-noise"]) == 1.0
    assert found["nothing-but-noise"] == pytest.approx(2 * list(LEVELS))


OWN_OPTION = [
    'check={name="peer-cosine", alignment=0.5, history=3, level=0.2}',
    'study.checks=["variance", "peer-cosine"]',
    "study.losses=[1.0]",
    "study.seeds=2",
    "rounds=2",
    "model.evaluate_every=2",
]


@pytest.mark.parametrize("name", ["detection", "cheating"])
def test_options_of_the_scenarios_check_are_no_options_of_other_checks(name):
    settings = list(OWN_OPTION)
    if name == "cheating":
        settings += ['study.auctions=["posted-price"]', 'study.cheats=["stale"]']
    scenario = fm.load_scenario(ROOT / f"scenarios/studies/{name}.toml", settings)
    rows = find_out(scenario).rows
    assert {row["check"] for row in rows} == {"variance", "peer-cosine"}
    own, other = (check_table(scenario, check) for check in ("peer-cosine", "variance"))
    assert own["alignment"] == 0.5 and "alignment" not in other
    assert own["history"] == other["history"] == 3 and own["level"] == other["level"] == 0.2


def test_an_unknown_cheat_is_refused_before_anything_runs():
    with pytest.raises(fm.FlmarketError, match="no-such-cheat"):
        find_out(fm.load_scenario(SCENARIO, ["study.cheat=no-such-cheat"]))
