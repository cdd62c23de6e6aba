"""A study from Python: asked, kept in a directory, read back."""

import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.report.study_folder import read_study, write
from flmarket_sim.scenario.scenario_file import load_scenario
from flmarket_sim.studies.study_run import run_study
from tests.support.paths import ROOT


def test_what_a_study_found_is_read_back(tmp_path):
    settings = [
        "data.name=synthetic",
        "study.profiles=2",
        'study.auctions=["posted-price"]',
        "study.max_sweeps=1",
    ]
    scenario = load_scenario(ROOT / "scenarios/studies/rest-point.toml", settings)
    finding = run_study(scenario, tmp_path / "study", write)
    kept = read_study(tmp_path / "study")
    assert repr(kept.rows) == repr(finding.rows)  # with what is no number
    assert kept.sentences == finding.sentences
    assert kept.scenario == scenario.as_dict()


def test_a_scenario_without_a_question_and_a_folder_without_a_study_are_refused(tmp_path):
    with pytest.raises(InputError, match="asks no question"):
        run_study(load_scenario(ROOT / "scenarios/quickstart.toml"), tmp_path / "study", print)
    with pytest.raises(InputError, match="not the directory of a study"):
        read_study(tmp_path)
