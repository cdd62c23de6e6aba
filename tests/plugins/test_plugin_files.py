"""Plug-ins in files: found by path, imported once, found again by workers and by a resumed run."""

import pickle
import sys

import pytest

import flmarket_sim as fm
from flmarket_sim.auctions import named
from flmarket_sim.errors import InputError
from flmarket_sim.experiments.worker_processes import in_processes
from flmarket_sim.plugins import plugin_files, registry
from tests.support.command_line import flmarket, json_output

AUCTION = '''
from flmarket_sim.auctions.all_in import AllIn


class Mine(AllIn):
    """As all-in."""

    name = "mine"

    def __init__(self, chance: float = 0.5) -> None:
        super().__init__()
        self.chance = chance
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working directory; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(plugin_files, "_imported", {})
    monkeypatch.setattr(plugin_files, "_places", {})
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "") or "").startswith(str(tmp_path)):
            del sys.modules[name]


def test_a_path_and_a_module_of_the_working_directory_name_one_class(folder):
    (folder / "mine_here.py").write_text(AUCTION)
    path = registry.auctions.get("mine_here.py:Mine")
    assert path is registry.auctions.get("mine_here:Mine")
    assert path is registry.auctions.get(f"{folder}/mine_here.py:Mine")
    assert path.__module__ == "mine_here"
    assert registry.auctions.create("mine_here.py:Mine", chance=0.25).chance == 0.25


def test_the_working_directory_comes_last_and_only_when_a_plug_in_is_named(folder):
    (folder / "fractions.py").write_text("raise RuntimeError('not Python\\'s')\n")
    (folder / "mine_last.py").write_text(f"import fractions\n{AUCTION}")
    registry.auctions.create("all-in")
    assert str(folder) not in sys.path
    registry.auctions.create("mine_last.py:Mine")
    assert sys.path[-1] == str(folder)


def test_files_of_one_name_in_two_folders_are_two_modules(folder):
    for place in ("a", "b"):
        (folder / place).mkdir()
        (folder / place / "same_name.py").write_text(AUCTION + f"    place = {place!r}\n")
    first, second = (registry.auctions.get(f"{place}/same_name.py:Mine") for place in "ab")
    assert (first.place, second.place) == ("a", "b")
    assert first.__module__ == "same_name" and second.__module__.startswith("same_name_")
    assert second is registry.auctions.get("b/same_name.py:Mine")
    assert pickle.loads(pickle.dumps(second)) is second


def test_a_file_finds_its_neighbours_and_its_package(folder):
    (folder / "sub").mkdir()
    (folder / "sub" / "neighbour_of_it.py").write_text("CHANCE = 0.75\n")
    (folder / "sub" / "has_neighbour.py").write_text(
        f"from neighbour_of_it import CHANCE\n{AUCTION}"
    )
    assert registry.auctions.create("sub/has_neighbour.py:Mine")
    package = folder / "package_here" / "inner"
    package.mkdir(parents=True)
    for place in (package, package.parent):
        (place / "__init__.py").write_text("")
    (package / "numbers_of_it.py").write_text("CHANCE = 0.75\n")
    (package / "mechanism.py").write_text(f"from .numbers_of_it import CHANCE\n{AUCTION}")
    found = registry.auctions.get("package_here/inner/mechanism.py:Mine")
    assert found.__module__ == "package_here.inner.mechanism"


def test_a_built_in_file_is_the_built_in_plug_in():
    from flmarket_sim.auctions import all_in

    assert registry.auctions.get(f"{all_in.__file__}:AllIn") is all_in.AllIn


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.py:Mine", r"no file 'nowhere.py': paths are relative to the working directory"),
        ("mine_wrong.py:Mien", "file 'mine_wrong.py' has no 'Mien'; did you mean 'Mine'"),
        ("mine_wrong.py", "name the class in the file, too: mine_wrong.py:Class"),
        ("sub/mine_wrong:Mine", "a file is named with its ending, as sub/mine_wrong.py:Class"),
        ("mine_wrong.py:AllIn.name", "has no"),
        ("broken_here.py:Mine", r"SyntaxError: .*\n    broken_here.py:2\n        def f\(self:"),
        ("leaves_here.py:Mine", "cannot be imported: SystemExit: 3\n    leaves_here.py:1"),
        ("a\0b.py:Mine", "is not a path"),
    ],
)
def test_what_a_path_does_not_lead_to_is_explained(folder, name, message):
    (folder / "sub").mkdir()
    for place in (folder, folder / "sub"):
        (place / "mine_wrong.py").write_text(AUCTION)
    (folder / "broken_here.py").write_text("class Mine:\n    def f(self:\n        pass\n")
    (folder / "leaves_here.py").write_text("raise SystemExit(3)\n")
    with pytest.raises(InputError, match=message):
        registry.auctions.get(name)


PLUGINS = """
import numpy as np
from flmarket_sim.learning.synthetic import Synthetic
from flmarket_sim.strategy.behaviours.distortions import Truthful
from flmarket_sim.perturbation.laplace import Laplace
from flmarket_sim.aggregation.simple_rules import UniformWeights


class Data(Synthetic):
    name = "my-data"


class Owner(Truthful):
    name = "my-owner"


class Noise(Laplace):
    name = "my-noise"


class Rule(UniformWeights):
    name = "my-rule"


class Value:
    name = "my-value"

    def value(self, privacy_loss):
        return 2.0 * privacy_loss

    def loss_for_money(self, money):
        return money / 2.0


def worth(privacy_budget, data_size):
    return privacy_budget * data_size
"""


def test_plug_ins_of_every_kind_can_stand_in_a_file(folder):
    (folder / "all_of_them.py").write_text(PLUGINS)
    run = fm.run(
        "quickstart",
        folder / "run",
        rounds=2,
        model="none",
        owners__families=["linear", "all_of_them.py:Value"],
        owners__behaviours=[{"name": "all_of_them.py:Owner", "share": 0.5}],
        auction={"name": "all-in", "value": "all_of_them.py:worth"},
        data={"name": "all_of_them.py:Data", "records": 4000},
        perturbation="all_of_them.py:Noise",
        aggregation="all_of_them.py:Rule",
    )
    assert len(run.rounds) == 2
    assert set(run.info["plugins"]) == {
        f"all_of_them.py:{name}" for name in ("Data", "Owner", "Noise", "Rule", "Value", "worth")
    }
    assert all(
        facts["file"] == str(folder / "all_of_them.py") for facts in run.info["plugins"].values()
    )


def stopped(folder, name):
    """A run with the plug-in that was stopped after its first round."""

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fm.run("quickstart", folder / "run", stop, rounds=3, model="none", auction=name)
    return folder / "run"


def test_a_run_is_resumed_from_another_directory(folder, monkeypatch):
    (folder / "mine_resumed.py").write_text(AUCTION)
    run = stopped(folder, "mine_resumed.py:Mine")
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    assert len(fm.resume(run).rounds) == 3
    assert fm.Run(run).scenario.auction.name == "mine_resumed.py:Mine"


def test_a_run_is_not_resumed_with_another_plug_in(folder):
    file = folder / "mine_changed.py"
    file.write_text(AUCTION)
    run = stopped(folder, "mine_changed.py:Mine")
    file.write_text(AUCTION + "\n# changed\n")
    with pytest.raises(InputError, match=r"mine_changed.py:Mine .* gone or was changed"):
        fm.resume(run)
    file.write_text(AUCTION)
    assert len(fm.resume(run).rounds) == 3


def made_by(text):
    """What a worker makes of a name (a function of a module, for worker processes)."""
    auction = named(text)
    return [auction.name, auction.chance, type(auction).__module__]


def test_worker_processes_find_the_file_from_the_same_directory(folder):
    (folder / "mine_in_workers.py").write_text(AUCTION)
    text = "mine_in_workers.py:Mine[chance=0.125]"
    [(_, made)] = in_processes(made_by, [text], 1)
    assert made == ["mine", 0.125, "mine_in_workers"]


def test_the_command_line_finds_files_and_modules_of_the_working_directory(tmp_path):
    (tmp_path / "mine_on_cli.py").write_text(AUCTION)
    for name in ("mine_on_cli.py:Mine", "mine_on_cli:Mine"):
        found = flmarket("validate", "quickstart", "--set", f"auction.name={name}", cwd=tmp_path)
        assert found.returncode == 0, found.stderr
    rows = json_output(
        "evaluate", "a=mine_on_cli.py:Mine[chance=0.5]", "b=mine_on_cli.py:Mine[chance=0.1]",
        "--scenario", "quickstart", "--profiles", "4", "--budgets", "0.5,1", "--floor", "0",
        "--workers", "2", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert [(row["label"], row["budget_factor"]) for row in rows] == [
        ("a", "0.5"), ("b", "0.5"), ("a", "1"), ("b", "1"),
    ]  # fmt: skip
