"""Trainings are killed at random moments, done again, and end with the same bytes."""

import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from flmarket_sim import training
from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.training import epochs

CHILD = """
import sys
from pathlib import Path
import torch
from tests.training.test_training_killed import train
torch.set_num_threads(1)
train(sys.argv[1], Path(sys.argv[2]), lambda step, *_: print(step, flush=True))
"""
MARKET = build_scenario(
    {
        "data": {"name": "synthetic", "records": 3000},
        "owners": {"count": 40},
        "market": {"bidders": 4},
    }
)
STEPS = 12


def train(mechanism: str, out: Path, progress=None):
    settings = training.preset("fast", mechanism)
    few = {"markets": 16, "steps": STEPS, "steps_per_epoch": 3}
    settings = replace(
        settings, **{key: value for key, value in few.items() if hasattr(settings, key)}
    )
    return training.train(mechanism, MARKET, "opt-aggr", out, settings, progress=progress)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.processes
@pytest.mark.parametrize("mechanism", ["dm-regretnet", "seq-price"])
def test_a_training_that_is_killed_ends_with_the_same_bytes(tmp_path, mechanism):
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    lot, out = random.Random(mechanism), tmp_path / "killed" / "w.safetensors"
    try:
        train(mechanism, tmp_path / "whole" / "w.safetensors")
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD, mechanism, str(out)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        last = lot.randint(4, STEPS - 1)
        while int(process.stdout.readline()) < last:
            pass
        time.sleep(lot.uniform(0, 0.02))
        process.kill()
        process.communicate()
        heard = []
        train(mechanism, out, lambda step, *_: heard.append(step))
    finally:
        torch.set_num_threads(before)
    assert heard == [] or heard[0] > 3, "it did not begin anew"
    assert files(tmp_path / "whole") == files(tmp_path / "killed")


def test_a_training_of_something_else_is_not_gone_on_with(tmp_path):
    out = tmp_path / "w.safetensors"

    def stop(step, *_):
        if step == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train("m-regretnet", out, stop)
    state = torch.load(tmp_path / "w.safetensors.training", weights_only=True)
    with pytest.raises(InputError, match="another mechanism, rule, seed"):
        train("dm-regretnet", out)
    for damage in (
        {"step": "x"},
        {"step": -5},
        {"step": 10**9},
        {"history": 5},
        {"network": 5},
        {"of": None},
    ):
        torch.save(state | damage, tmp_path / "w.safetensors.training")
        with pytest.raises(InputError, match=r"begins anew|another mechanism"):
            train("m-regretnet", out)


def test_two_trainings_do_not_share_a_file(tmp_path):
    out = tmp_path / "w.safetensors"

    def again(step, *_):
        with pytest.raises(InputError, match="another process is training into"):
            train("regretnet", out)

    train("regretnet", out, again)
    assert set(files(tmp_path)) == {"w.safetensors", "w.metrics.parquet"}


def test_a_damaged_state_is_named_and_a_full_disk_loses_no_epoch(tmp_path, monkeypatch):
    out = tmp_path / "w.safetensors"
    (tmp_path / "w.safetensors.training").write_bytes(b"PK torn")
    with pytest.raises(InputError, match="delete it, and the training begins anew"):
        train("dm-regretnet", out)
    (tmp_path / "w.safetensors.training").unlink()

    saved, real = [], torch.save

    def full(state, path):
        saved.append(state["step"])
        if len(saved) == 2:
            path.write_bytes(b"half of it")
            raise OSError(28, "No space left on device")
        real(state, path)

    monkeypatch.setattr(epochs.torch, "save", full)
    with pytest.raises(FlmarketError, match="the disk is full"):
        train("dm-regretnet", out)
    assert list(files(tmp_path)) == ["w.safetensors.training"]
    heard = []
    train("dm-regretnet", out, lambda step, *_: heard.append(step))
    assert heard[0] == 4
