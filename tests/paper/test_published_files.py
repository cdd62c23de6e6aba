"""The authors' files are found in a folder or in its folders, and what is missing is named."""

import shutil

import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.paper.published_files import instance_names, located, missing_files
from flmarket_sim.paper.reproduction import experiment
from flmarket_sim.studies.study_run import study_of
from tests.support.command_line import flmarket
from tests.support.published_weights import published_weights


def test_names_follow_the_authors():
    assert instance_names(1, "iid")[:2] == ["reg_nslkdd_iid.pt", "reg_nslkdd_iid_1.pt"]
    assert instance_names(16, "niid")[9] == "16-reg_nslkdd_niid_9.pt"
    assert instance_names(3, "iid") == []


def test_a_flat_folder_and_one_with_folders_have_the_same_files(tmp_path):
    (tmp_path / "levels").mkdir()
    for path in ("reg_nslkdd_iid.pt", "levels/2-reg_nslkdd_iid_4.pt"):
        (tmp_path / path).write_bytes(b"")
    assert located(tmp_path, "reg_nslkdd_iid.pt") == tmp_path / "reg_nslkdd_iid.pt"
    assert located(tmp_path, "2-reg_nslkdd_iid_4.pt").parent.name == "levels"
    assert located(tmp_path, "8-reg_nslkdd_iid.pt") is None
    missing = missing_files(tmp_path)
    assert len(missing) == 104 - 2 and "8-reg_nslkdd_iid.pt" in missing


def test_a_folder_without_any_says_what_it_should_have(tmp_path):
    (tmp_path / "other.pt").write_bytes(b"")
    with pytest.raises(InputError, match=r"checkpoints.*such as reg_nslkdd_iid\.pt"):
        missing_files(tmp_path)
    with pytest.raises(InputError, match="not a folder"):
        missing_files(tmp_path / "none")


def test_nothing_is_missing_beside_the_checkout():
    folder = published_weights()
    assert missing_files(folder) == []
    scenario = experiment("levels", False, folder)
    tasks = study_of(scenario).tasks(scenario)
    assert len(tasks) == 100 and len({task["weights"] for task in tasks}) == 100
    assert "steps" not in tasks[0]  # nothing is trained
    both = experiment("levels", False, folder, ["study.train=true"])
    assert len(study_of(both).tasks(both)) == 200
    for name in ("error-bound", "accuracy", "guarantees"):
        for market in study_of(experiment(name, True, folder)).markets:
            assert market.has("published-dm-regretnet", "convl-aggr", str(folder))


def test_some_missing_files_are_a_note_and_not_an_error(tmp_path):
    source = published_weights()
    flat = tmp_path / "flat"
    flat.mkdir()
    shutil.copy(source / "levels/2-reg_nslkdd_iid.pt", flat)
    small = [
        "study.levels=[1, 2]", "study.quick.profiles=4", "study.quick.attacked=2",
        "study.quick.probed=1", 'study.effort="quick"', "data.name=synthetic",
        "data.records=4000", "owners.count=40",
    ]  # fmt: skip
    told = flmarket(
        "reproduce", "levels", "--quick", "--authors", flat, "--out", tmp_path / "out",
        "--workers", "1", *(part for each in small for part in ("--set", each)),
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert "lacks 103 of the authors' files" in told.stderr
    assert "published weights" in (tmp_path / "out/levels.md").read_text()
