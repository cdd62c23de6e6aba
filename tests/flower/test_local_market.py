"""A first try on one machine: it ends in order, and no directory holds two markets."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.eventlog.run import Run
from flmarket_sim.flower import local_market
from flmarket_sim.flower.lifeline import Lifeline, held
from flmarket_sim.flower.local_market import run_locally
from flmarket_sim.flower.project import drawn_project
from tests.flower.gated import CLOSED
from tests.flower.small_markets import held as held_market
from tests.flower.small_markets import small
from tests.support.commands_here import called
from tests.support.paths import ROOT
from tests.support.patience import PATIENCE, wait_until


def test_a_server_ends_with_its_lifeline():
    line = Lifeline()
    closing = threading.Thread(target=line.close)
    closing.daemon = True

    def serve():
        with held(line.address):
            closing.start()
            time.sleep(PATIENCE)

    with pytest.raises(KeyboardInterrupt):
        serve()
    closing.join()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt), held(line.address):
            raise AssertionError("nobody is there any more")
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


class Slow(Lifeline):
    """On a busy machine a server connects, and nobody has answered it by the end."""

    def _accept(self):
        time.sleep(0.1)
        super()._accept()


@pytest.mark.parametrize("kind", [Lifeline, Slow])
def test_a_server_that_ends_by_itself_is_not_ended(kind):
    line, ended = kind(), []
    with held(line.address):
        closing = threading.Thread(target=line.close, args=(PATIENCE,))
        closing.start()
        time.sleep(0.2)
        ended.append(closing.is_alive())
    closing.join()
    assert ended == [True]


def tried(folder, scenario):
    """The directories of a try."""
    held_market(scenario, folder / "held")
    shutil.move(folder / "held" / "run", folder / "try")
    shutil.move(folder / "held" / "owners", folder / "try-clients")
    drawn_project(folder / "try-clients" / "project", scenario)
    return folder / "try"


def test_a_directory_with_another_market_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(local_market, "read_info", lambda out: {"outcome": "interrupted"})
    out = tried(tmp_path, small(rounds=1))
    with pytest.raises(InputError, match="a market of another scenario, seed or setting"):
        run_locally(small(rounds=1, seed=5), out)
    with pytest.raises(InputError, match="a market of another scenario, seed or setting"):
        run_locally(small(rounds=2), out)
    shutil.rmtree(tmp_path / "try-clients")
    with pytest.raises(InputError, match="whose clients were not here"):
        run_locally(small(rounds=1), out)


def test_ledgers_of_a_deleted_run_are_not_used_for_another(tmp_path):
    out = tried(tmp_path, small(rounds=1))
    shutil.rmtree(out)
    with pytest.raises(InputError, match=r"try-clients has the owners' ledgers of a run"):
        run_locally(small(rounds=1), out)
    with pytest.raises(InputError, match=r"try-clients holds a market of another scenario"):
        run_locally(small(rounds=1, seed=5), out)
    assert not out.exists()


def test_ctrl_c_prints_the_whole_command(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(local_market, "run_locally", interrupted)
    monkeypatch.chdir(tmp_path)
    words = ["quickstart", "--set", "rounds=2", "--set", "owners.count=40", "--seed", "7"]
    words += ["--processes", "3", "--out", "a b"]
    told = called("flower", "run", *words)
    assert told.code == 130
    assert shlex.join(["flmarket", "flower", "run", *words]) in told.err.replace("\n", " ")


PARENT = """
import sys, time
from pathlib import Path
from flmarket_sim.flower import local_market
local_market.SUPERLINK, local_market._answers = "signal:pause", lambda *_: True
market = local_market.LocalMarket(Path(sys.argv[1]))
print(market.start_link().pid, flush=True)
time.sleep(600)
"""


@pytest.mark.processes
def test_the_superlink_ends_with_a_market_that_is_killed(tmp_path):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    link = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.communicate()
    assert not psutil.wait_procs([link], timeout=60)[1]


@pytest.mark.processes
def test_after_ctrl_c_nothing_is_left_and_the_printed_command_finishes_the_run(
    tmp_path, monkeypatch
):
    """Ctrl-C of a terminal reaches all processes of its group. It comes in the second round, which
    does not end as long as the gate is closed."""
    out, said, gate = tmp_path / "try", tmp_path / "said", tmp_path / "closed"
    gate.touch()
    monkeypatch.setenv(CLOSED, str(gate))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    settings = ["rounds=3", "owners.count=3", "market.bidders=3", "log.ceiling=never"]
    settings += ["auction.name=tests.flower.gated:Gated"]
    words = [word for one in settings for word in ("--set", one)]
    words = ["flower", "run", "quickstart", *words, "--processes", "1", "--out", str(out)]
    command = [sys.executable, "-m", "flmarket_sim.cli", *words]
    with said.open("w") as file:
        begun = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
    wait_until(lambda: (out / "checkpoint.npz").exists() or begun.poll() is not None)
    assert begun.poll() is None, said.read_text()
    family = psutil.Process(begun.pid).children(recursive=True)
    assert len(family) > 2
    os.killpg(begun.pid, signal.SIGINT)
    assert begun.wait(PATIENCE) == 130
    assert not psutil.wait_procs(family, timeout=60)[1]
    hint = said.read_text().replace("\n", " ")
    again = shlex.split(hint[hint.index("`") + 1 : hint.rindex("`")])
    assert again == ["flmarket", *words] and Run(out).info["outcome"] == "interrupted"
    gate.unlink()
    subprocess.run([*command[:3], *again[1:]], check=True, timeout=PATIENCE)
    assert [row["round"] for row in Run(out).rounds.to_pylist()] == [0, 1, 2]
    assert Run(out).info["outcome"] == "finished"
