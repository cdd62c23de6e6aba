"""`flmarket flower`: what it says of wrong input, and of a missing Flower."""

import os
import sys

import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.flower import library
from flmarket_sim.flower.server_market import Settings, serve
from tests.flower.small_markets import grid_of, held, small
from tests.support.commands_here import called


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "nothing.toml"], "nothing.toml"),
        (["join", "127.0.0.1:1", "no_such_module:app"], "no_such_module"),
        (["join", "127.0.0.1:1", "os:path", "--set", "name"], "KEY=VALUE"),
        (["join", "127.0.0.1:1", "os:path", "--root-certificates", "no.pem"], "no.pem"),
        (["view", "nobody", "--out", "view"], "no ledger"),
    ],
)
def test_wrong_input_is_one_paragraph_and_exit_2(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = called("flower", *arguments)
    assert told.code == 2 and words in told.err
    assert "Traceback" not in told.err


def test_join_says_at_once_that_a_setting_or_a_folder_is_wrong(tmp_path, monkeypatch):
    called("flower", "new", str(tmp_path / "market"))
    monkeypatch.chdir(tmp_path / "market")
    monkeypatch.syspath_prepend(tmp_path / "market")
    (tmp_path / "file").write_text("no folder")
    join = ["flower", "join", "127.0.0.1:1", "private_market.client:app"]
    wrong = {
        "without the setting 'name'": [],
        "could not convert string to float": ["name=ann", "rate=high"],
        "cannot be used": ["name=ann", f"folder={tmp_path / 'file'}"],
    }
    for words, settings in wrong.items():
        told = called(*join, *(word for one in settings for word in ("--set", one)))
        assert told.code == 2 and words in told.err.replace("\n", " ")
        assert "Taking part" not in told.err and "Traceback" not in told.err


def test_flower_new_lists_its_files(tmp_path):
    told = called("flower", "new", str(tmp_path / "market"))
    assert told.code == 0
    assert str(tmp_path / "market" / "private_market" / "client.py") in told.out


def test_without_flower_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "flwr", None)
    monkeypatch.delitem(sys.modules, "flwr.app", raising=False)
    with pytest.raises(InputError, match=r"pip install 'flmarket-sim\[flower\]'"):
        library.flower()


def test_telemetry_is_off_wherever_flower_runs(monkeypatch):
    monkeypatch.setenv("FLWR_TELEMETRY_ENABLED", "1")
    library.flower()
    assert os.environ["FLWR_TELEMETRY_ENABLED"] == "0"
    assert library.environment()["FLWR_TELEMETRY_ENABLED"] == "0"


def test_behaviours_and_unknowable_budgets_are_refused(tmp_path):
    liars = small(owners__behaviours=[{"name": "scale", "share": 0.5, "factor": 2.0}])
    with pytest.raises(InputError, match=r"real clients cannot follow owners\.behaviours"):
        serve(liars, tmp_path / "a", None)
    grid, _ = grid_of(small(), tmp_path / "owners")
    with pytest.raises(InputError, match="which nobody knows of real owners"):
        serve(small(), tmp_path / "b", grid, Settings(drawn=False))


def test_a_run_of_real_clients_is_not_simulated_on(tmp_path):
    from flmarket_sim.market.simulation import resume
    from tests.support.loopback_grid import KilledError

    grid, _ = grid_of(small(), tmp_path / "owners", kill_at=12)
    with pytest.raises(KilledError):
        serve(small(), tmp_path / "run", grid, Settings(drawn=True))
    with pytest.raises(InputError, match="no simulation can continue"):
        resume(tmp_path / "run")


def test_a_directory_with_another_run_is_refused(tmp_path):
    held(small(rounds=1), tmp_path)
    grid, _ = grid_of(small(), tmp_path / "others")
    with pytest.raises(InputError, match="holds another run"):
        serve(small(seed=5), tmp_path / "run", grid, Settings(drawn=True))


def test_without_clients_the_server_says_what_to_do(tmp_path):
    grid, _ = grid_of(small(), tmp_path / "owners")
    grid.offline = set(range(1, 7))
    with pytest.raises(InputError, match="start SuperNodes"):
        serve(small(), tmp_path / "run", grid, Settings(drawn=True, gather=0.1))
