"""A command names foreign code before it runs, and runs none of it with --no-plugins."""

import sys

import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.plugins import registry
from flmarket_sim.plugins.foreign_code import ForeignCode, ForeignCodeRefused, policy
from tests.support.commands_here import called

PLUGIN = """
import pathlib, sys
pathlib.Path(__file__).with_suffix(".ran").touch()
print("the plug-in runs", file=sys.stderr)
from flmarket_sim.auctions.pay_as_bid import PayAsBid
class Lottery(PayAsBid):
    name = "lottery"
"""
SCENARIO = 'rounds = 1\nowners.count = 20\nmodel.name = "none"\nauction.name = "{}"\n'


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A working directory with a plug-in, a module, and scenarios that name them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "scenarios").mkdir()
    for name in ("lottery_file", "lottery_module"):
        (tmp_path / f"{name}.py").write_text(PLUGIN)
    names = {
        "file": "lottery_file.py:Lottery", "module": "lottery_module:Lottery", "own": "pay-as-bid",
    }  # fmt: skip
    for kind, name in names.items():
        (tmp_path / "scenarios" / f"{kind}.toml").write_text(SCENARIO.format(name))
    yield tmp_path
    sys.modules.pop("lottery_file", None)
    sys.modules.pop("lottery_module", None)


def ran(place):
    return sorted(path.stem for path in place.glob("*.ran"))


@pytest.mark.parametrize("kind", ["file", "module"])
@pytest.mark.parametrize("command", [["validate"], ["run", "--out", "out"]])
def test_foreign_code_is_named_before_it_runs(place, kind, command):
    name = {"file": "lottery_file.py:Lottery", "module": "lottery_module:Lottery"}[kind]
    ended = called(*command, f"scenarios/{kind}.toml")
    assert ended.code == 0 and ran(place) == [f"lottery_{kind}"]
    first, second = ended.err.splitlines()[:2]
    assert first == f"flmarket: importing foreign code: {name}" and second == "the plug-in runs"


@pytest.mark.parametrize("kind", ["file", "module"])
@pytest.mark.parametrize("command", [["validate"], ["run", "--out", "out"], ["study"]])
def test_without_plug_ins_the_scenario_is_refused_by_name(place, kind, command):
    refused = called(*command, "--no-plugins", f"scenarios/{kind}.toml")
    assert refused.code == 2 and ran(place) == [] and "importing" not in refused.err
    assert f"lottery_{kind}" in refused.err and "--no-plugins" in refused.err, refused.err
    assert called("--no-plugins", *command, f"scenarios/{kind}.toml").code == 2 and ran(place) == []


def test_built_in_names_need_no_foreign_code(place):
    ended = called("validate", "--no-plugins", "scenarios/own.toml")
    assert ended.code == 0 and ended.err == ""


def test_the_list_of_scenarios_names_what_it_imports_or_what_it_does_not_look_at(place):
    listed = called("list", "scenarios", "--no-plugins")
    assert listed.code == 0 and ran(place) == []
    assert listed.out.count("not looked at") == 2 and "lottery_file.py:Lottery" in listed.out
    listed = called("list", "scenarios")
    assert listed.code == 0 and ran(place) == ["lottery_file", "lottery_module"]
    assert listed.err.count("importing foreign code") == 2 and "not looked at" not in listed.out


def test_the_entry_point_of_another_package_is_foreign_code(place, monkeypatch):
    monkeypatch.setitem(registry.auctions._targets, "their-auction", "lottery_module:Lottery")
    listed = called("list", "auctions", "--no-plugins")
    assert listed.code == 0 and ran(place) == [] and "not looked at" in listed.out
    listed = called("list", "auctions")
    assert "importing foreign code: lottery_module:Lottery" in listed.err
    registry.auctions._classes.pop("their-auction", None)


def test_quiet_commands_do_not_name_it(place):
    assert "importing" not in called("validate", "-q", "scenarios/file.toml").err


def test_a_command_leaves_no_policy_behind(place):
    called("validate", "--no-plugins", "scenarios/file.toml")
    assert policy == ForeignCode()
    registry.auctions.get("lottery_file.py:Lottery")


def test_a_module_that_only_begins_like_ours_is_foreign():
    strict = ForeignCode(allowed=False)
    strict.announce("flmarket_sim.auctions.all_in:AllIn", "auction")
    for target in ("flmarket_simulator:A", "os:system", "flmarket_sim.py:A", "flmarket_sim/x.py:A"):
        with pytest.raises(ForeignCodeRefused, match="auction: --no-plugins"):
            strict.announce(target, "auction")
    assert issubclass(ForeignCodeRefused, InputError)
