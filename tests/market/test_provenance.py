"""A run goes on with the weights, plug-ins, versions and CPU that began it, and with no others."""

import inspect
import os
import shutil
import subprocess
import sys

import pytest

import flmarket_sim as fm
from benchmarks.kills import fingerprint
from flmarket_sim.auctions.learned import weight_files, weight_names
from flmarket_sim.errors import InputError
from flmarket_sim.market import checkpoint, named_files
from flmarket_sim.market.named_files import file_contents
from flmarket_sim.market.provenance import PACKAGES, cpu, differences
from flmarket_sim.plugins import registry
from flmarket_sim.plugins.registry import BUILT_IN
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


@pytest.fixture
def shipped_weights(tmp_path, monkeypatch):
    """The folder of a package whose shipped weights can be replaced."""
    folder = shutil.copytree(WEIGHTS, tmp_path / "weights")
    monkeypatch.setattr(weight_names, "SHIPPED", folder)
    return folder


@pytest.mark.parametrize(
    ("auction", "file", "name"),
    [
        ({"name": "record-price"}, "paper-part.record-price", "record-price@paper-part"),
        ({"name": "seq-price"}, "general.seq-price", "seq-price@general"),
        (
            {"name": "seq-price", "size": "reported"},
            "general.seq-price.reported",
            r"seq-price@general\[size=reported\]",
        ),
    ],
)
def test_replaced_weights_of_the_package_are_refused_and_the_old_ones_go_on(
    tmp_path, shipped_weights, auction, file, name
):
    scenario = build_scenario(SMALL | {"auction": auction})
    whole = fm.run(scenario, tmp_path / "whole").path
    out = tmp_path / "run"
    broken_off(scenario, out)
    weights = shipped_weights / f"{file}.safetensors"
    before = weights.read_bytes()
    other = weight_files.load_safetensors(weights)
    other.facts["trained"] = "elsewhere"
    weight_files.save(weights, other)
    with pytest.raises(InputError, match=f"the content of {name} .* \\(now"):
        fm.resume(out)
    weights.write_bytes(before)
    assert fm.resume(out).info["outcome"] == "finished"
    assert fingerprint(out) == fingerprint(whole)


@pytest.mark.parametrize(
    ("data", "names"),
    [
        ("all-in", set()),
        ("seq-price", {"seq-price@general"}),
        ("a label=seq-price@general[size=reported]", {"seq-price@general[size=reported]"}),
        ({"name": "seq-price", "size": "reported"}, {"seq-price@general[size=reported]"}),
        ({"name": "record-price", "weights": "paper-all"}, {"record-price@paper-all"}),
        ({"auction": {"name": "m-regretnet", "rule": "convl-aggr"}}, {"m-regretnet@general"}),
        (["regretnet", ["dm-regretnet"]], {"regretnet@general", "dm-regretnet@general"}),
        ("seq-price[", set()),
        ("mfg-regretnet@nowhere", set()),
    ],
)
def test_shipped_weights_have_names_without_a_path(data, names):
    assert file_contents(data).keys() == names


def test_the_default_weights_are_those_of_the_constructors():
    learned = [name for name, at in BUILT_IN["auction"].items() if ".learned." in at.split(":")[0]]
    weights = {
        name: inspect.signature(registry.auctions.get(name)).parameters["weights"].default
        for name in learned
    }
    needed = [name for name in learned if weights[name] is inspect.Parameter.empty]
    assert needed == ["mfg-regretnet"]
    assert {name: weights[name] for name in learned if name not in needed} == weight_names.DEFAULTS


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


def test_a_changed_module_beside_a_plug_in_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "parts_of_mine").mkdir()
    (tmp_path / "parts_of_mine/__init__.py").write_text("")
    (tmp_path / "parts_of_mine/deeper.py").write_text("FACTOR = 0.5\n")
    (tmp_path / "helper_of_mine.py").write_text("from parts_of_mine.deeper import FACTOR\n")
    (tmp_path / "mine_with_help.py").write_text("from helper_of_mine import FACTOR\n" + PLUGIN)
    scenario = build_scenario(SMALL | {"auction": {"name": "mine_with_help.py:Mine"}})
    broken_off(scenario, tmp_path / "run")
    monkeypatch.chdir("/")
    for name in ("helper_of_mine.py", "parts_of_mine/deeper.py"):
        before = (tmp_path / name).read_text()
        (tmp_path / name).write_text(before + "\n# changed\n")
        with pytest.raises(InputError, match=f"{name}, which mine_with_help.py:Mine imports"):
            fm.resume(tmp_path / "run")
        (tmp_path / name).write_text(before)
    assert fm.resume(tmp_path / "run").info["outcome"] == "finished"


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
