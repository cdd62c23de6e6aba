"""A run goes on with the weights, plug-ins, versions and CPU that began it, and with no others."""

import os
import shutil
import subprocess
import sys

import pytest

import flmarket_sim as fm
from benchmarks.kills import fingerprint
from flmarket_sim.errors import InputError
from flmarket_sim.market import checkpoint, named_files
from flmarket_sim.market.named_files import file_contents
from flmarket_sim.market.provenance import PACKAGES, cpu, differences
from flmarket_sim.scenario.scenario_file import build_scenario
from tests.support.paths import ROOT
from tests.support.sealed_json import write_sealed

WEIGHTS = ROOT / "flmarket_sim/auctions/learned/weights"
SMALL = {
    "rounds": 6,
    "data": {"name": "synthetic", "records": 400},
    "owners": {"count": 20},
    "model": {"name": "none"},
}
PLUGIN = """
from flmarket_sim.auctions.all_in import AllIn


class Mine(AllIn):
    name = "mine"
"""


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", 1e9)


def broken_off(scenario, out, rounds=3):
    def stop(done, total):
        if done == rounds:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fm.run(scenario, out, progress=stop)


@pytest.fixture
def learned(tmp_path):
    """A scenario whose auction has its weights in a file, and two sets of weights for it."""
    file, (one, other) = (
        tmp_path / "w.safetensors",
        sorted(WEIGHTS.glob("*.record-price.safetensors")),
    )
    shutil.copy(one, file)
    scenario = build_scenario(SMALL | {"auction": {"name": "record-price", "weights": str(file)}})
    return scenario, file, one, other


def test_a_resume_with_overwritten_weights_is_refused_and_with_the_old_ones_goes_on(
    tmp_path, learned
):
    scenario, file, one, other = learned
    whole = fm.run(scenario, tmp_path / "whole").path
    out = tmp_path / "run"
    broken_off(scenario, out)
    shutil.copy(other, file)
    with pytest.raises(InputError, match=r"the content of .*w\.safetensors .* \(now .*force=True"):
        fm.resume(out)
    assert fm.read_run(out)["outcome"] == "interrupted"
    shutil.copy(one, file)
    assert fm.resume(out).info["outcome"] == "finished"
    assert fingerprint(out) == fingerprint(whole)


def test_a_mixed_run_must_be_wanted_and_says_so(tmp_path, learned):
    scenario, file, _, other = learned
    broken_off(scenario, tmp_path / "run")
    shutil.copy(other, file)
    mixed = fm.resume(tmp_path / "run", mixed=True)
    assert "w.safetensors" in mixed.info["mixed"][0]
    assert mixed.info["mixed"][0] in mixed.info["warnings"]


def test_a_checkpoint_of_another_mechanism_is_refused(tmp_path, learned):
    scenario, file, one, other = learned
    broken_off(scenario, tmp_path / "run")
    shutil.copy(other, file)
    broken_off(scenario, tmp_path / "other")
    shutil.copy(one, file)
    shutil.copy(tmp_path / "other" / checkpoint.NAME, tmp_path / "run" / checkpoint.NAME)
    with pytest.raises(InputError, match=r"content of .*w\.safetensors"):
        fm.resume(tmp_path / "run")


@pytest.mark.parametrize(
    ("key", "name"), [("provenance", "numpy's SIMD"), ("provenance", "numpy's BLAS")]
)
def test_another_kind_of_cpu_is_refused_by_name(tmp_path, key, name):
    out = tmp_path / "run"
    broken_off(build_scenario(SMALL), out)
    info = fm.read_run(out)
    assert info[key][name] == cpu()[name]
    write_sealed(out / "run.json", info | {key: info[key] | {name: "SSE2"}})
    with pytest.raises(InputError, match=f"begun with {name} SSE2"):
        fm.resume(out)


def test_numpy_with_fewer_instructions_is_another_cpu():
    """A real process in which numpy may not use what this CPU has."""
    simd = cpu()["numpy's SIMD"].split()
    if len(simd) < 2:
        pytest.skip("numpy uses nothing beyond its baseline here")
    code = 'from flmarket_sim.market.provenance import cpu; print(cpu()["numpy\'s SIMD"])'
    environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": simd[-1]}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == simd[:-1]


def test_a_changed_module_is_refused(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a_changing_plugin.py").write_text(PLUGIN)
    scenario = build_scenario(SMALL | {"auction": {"name": "a_changing_plugin:Mine"}})
    broken_off(scenario, tmp_path / "run")
    (tmp_path / "a_changing_plugin.py").write_text(PLUGIN + "\n# changed\n")
    with pytest.raises(InputError, match="the content of a_changing_plugin:Mine"):
        fm.resume(tmp_path / "run")


def test_an_entry_point_counts_by_the_content_of_its_module(tmp_path, monkeypatch):
    (tmp_path / "an_installed_plugin.py").write_text(PLUGIN)
    installed = tmp_path / "installed-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Name: installed\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(
        "[flmarket_sim.auctions]\nbought-auction = an_installed_plugin:Mine\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    named_files._targets.cache_clear()
    try:
        before = file_contents({"auction": {"name": "bought-auction"}})
        (tmp_path / "an_installed_plugin.py").write_text(PLUGIN + "\n# changed\n")
        after = file_contents({"auction": {"name": "bought-auction"}})
    finally:
        named_files._targets.cache_clear()
    assert list(before) == list(after) == ["bought-auction"] and before != after


def test_a_file_with_the_name_of_the_scenario_or_of_its_data_is_no_mechanism(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "market").write_text("notes")
    info = fm.run(build_scenario(SMALL | {"name": "market", "rounds": 1}), tmp_path / "run").info
    assert set(info["provenance"]) == set(cpu())
    assert set(PACKAGES) < set(info["versions"])


def test_differences_say_what_it_was_and_what_it_is():
    then = {"same": "1", "gone": "2", "other": "a" * 64}
    assert differences(then, {"same": "1", "new": "3", "other": "b" * 64}) == [
        "new unknown (now 3)",
        "other aaaaaaaaaaaa (now bbbbbbbbbbbb)",
        "gone 2 (now not there)",
    ]
