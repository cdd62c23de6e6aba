"""A first try on one machine: a SuperLink, the owners of a scenario as nodes, and `flwr run`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.eventlog.run import Run
from flmarket_sim.eventlog.run_info import read_info
from flmarket_sim.flower.library import environment, flower
from flmarket_sim.flower.lifeline import Lifeline
from flmarket_sim.flower.own_ledger import FILE
from flmarket_sim.flower.project import SCENARIO, drawn_project
from flmarket_sim.market.checkpoint import read_checkpoint
from flmarket_sim.market.simulation import Progress
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.storage.atomic_files import write_text

BEGINNING = 120.0  # seconds for a SuperLink to start
LOOK = 0.2  # seconds between looks at a run
SILENCE = 20.0  # seconds without news, after which the SuperLink is asked about a run
LONG_SILENCE = 120.0  # the same for a run whose server has begun
ENDING = 20.0  # seconds for a process to end by itself
CONNECTION = "here"
SUPERLINK = "flwr.superlink.cli:flower_superlink"
# Ctrl-C reaches the process that waits for the market, and that one ends the others in order.
OWN_GROUP: dict[str, Any] = (
    {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
    if os.name == "nt"
    else {"start_new_session": True}
)


class LocalMarket:
    """The processes of a market on this machine. `folder` has their logs and the owners' ledgers.

    address  of the SuperLink, on loopback
    """

    def __init__(self, folder: Path) -> None:
        flower()
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.address = f"127.0.0.1:{_free_port()}"
        home = folder / "flower"
        home.mkdir(exist_ok=True)
        write_text(
            home / "config.toml",
            f'[superlink]\ndefault = "{CONNECTION}"\n\n'
            f'[superlink.{CONNECTION}]\naddress = "{self.address}"\ninsecure = true\n',
        )
        programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        self.environment = environment(FLWR_HOME=str(home.resolve()), PATH=programs)
        self.environment["FLWR_SUPEREXEC_TASK_POLL_INTERVAL"] = "0.2"
        self._running = ExitStack()
        self._inputs: list[IO[bytes]] = []
        self.lifeline = Lifeline()

    def __enter__(self) -> LocalMarket:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Ends the servers, then the owners all at once, then the SuperLink."""
        with self._running:
            self._running.callback(_close, self._inputs)
            self._running.callback(self.lifeline.close, ENDING if error is None else 0.0)

    def start(
        self, name: str, command: Sequence[str], patience: float = 0.0
    ) -> subprocess.Popen[bytes]:
        """A process that ends with this market; its output goes to NAME.log.

        `patience` is for how many seconds it may go on once its input has ended; the input of who
        has none ends last.
        """
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment,
                **OWN_GROUP,
            )
        assert process.stdin is not None
        self._running.callback(_close, [process.stdin])
        if patience:
            self._inputs.append(process.stdin)
        self._running.callback(_end, process, patience)
        return process

    def start_link(self) -> subprocess.Popen[bytes]:
        """A SuperLink that answers."""
        host, port = self.address.split(":")
        link = self.start(
            "superlink",
            [
                *(sys.executable, "-m", "flmarket_sim.flower.ends_with_input", SUPERLINK),
                "--insecure",
                "--disable-runtime-dependency-installation",
                "--host",
                host,
                "--port",
                port,
            ],
        )
        end = time.monotonic() + BEGINNING
        while not _answers(host, int(port)):
            if link.poll() is not None or time.monotonic() > end:
                raise FlmarketError(
                    f"the SuperLink did not start; {self.folder / 'superlink.log'} has its words"
                )
            time.sleep(LOOK)
        return link

    def run(self, project: Path, **config: object) -> str:
        """`flwr run` on a project; returns the number of the run in Flower."""
        words = " ".join(f"{key}={json.dumps(value)}" for key, value in config.items())
        answer = self._flwr("run", str(project), CONNECTION, "--run-config", words)
        number = answer.get("run-id")
        if not answer.get("success") or number is None:
            raise FlmarketError(f"flwr run failed: {answer}")
        return str(number)

    def status(self, number: str) -> str:
        """What Flower says of a run: "running", "finished:completed", "finished:failed", ..."""
        answer = self._flwr("ls", CONNECTION, "--run-id", number)
        runs = answer.get("runs") or [{}]
        return str(runs[0].get("status", "unknown"))

    def words(self, number: str) -> str:
        """What the server of a run has said last."""
        command = [*_program("flwr.cli.app:app"), "log", number, CONNECTION, "--show"]
        try:
            done = subprocess.run(
                command, env=self.environment, capture_output=True, text=True, timeout=30
            )
        except subprocess.TimeoutExpired:
            return ""
        said = [line for line in done.stdout.splitlines() if "flmarket: " in line]
        return said[-1].partition("flmarket: ")[2] if said else done.stdout.strip()[-400:]

    def _flwr(self, *arguments: str) -> dict[str, Any]:
        command = [*_program("flwr.cli.app:app"), *arguments, "--format", "json"]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        begin = done.stdout.find("{")
        try:
            answer: dict[str, Any] = json.loads(done.stdout[begin:])
        except ValueError:
            raise FlmarketError(
                f"flwr {arguments[0]} failed: {(done.stderr or done.stdout).strip()[-400:]}"
            ) from None
        return answer


def run_locally(
    scenario: Scenario, out: Path, progress: Progress | None = None, processes: int | None = None
) -> Run:
    """Holds the market of a scenario with its owners as real clients on this machine.

    A SuperLink, `processes` processes with the owners as nodes, and the server are started, and
    ended with the run. Beside the run, OUT-clients has the owners' ledgers, and logs.
    """
    if _outcome(out) == "finished":
        raise InputError(f"{out} holds a finished run; name another directory")
    folder = out.with_name(f"{out.name}-clients")
    project = folder / "project"
    _refuse_another_market(scenario, out, folder, project / SCENARIO)
    drawn_project(project, scenario)
    count = processes or max(1, os.cpu_count() or 1)
    with LocalMarket(folder) as market:
        market.start_link()
        for first in range(min(count, scenario.owners.count)):
            market.start(
                f"owners-{first}",
                [
                    sys.executable,
                    "-m",
                    "flmarket_sim.flower.drawn_nodes",
                    str(project / SCENARIO),
                    str(folder),
                    market.address,
                    *map(str, range(first, scenario.owners.count, count)),
                ],
                patience=ENDING,
            )
        number = market.run(
            project,
            out=str(out.resolve()),
            scenario=str((project / SCENARIO).resolve()),
            lifeline=market.lifeline.address,
        )
        follow(market, number, out, len(scenario.resolved_buyers()) * scenario.rounds, progress)
    return Run(out)


def _refuse_another_market(scenario: Scenario, out: Path, folder: Path, stored: Path) -> None:
    """Refuses directories in which another market has begun. Her ledger is an owner's memory, so
    a new market does not begin with the ledgers of an older one."""
    begun = bool(_outcome(out))
    if stored.exists():
        try:
            earlier = Scenario(**json.loads(stored.read_text(encoding="utf-8"))).digest()
        except ValueError:
            earlier = ""  # of another version, or not whole
        if earlier != scenario.digest():
            where = f"{out} and {folder} hold" if begun else f"{folder} holds"
            raise InputError(
                f"{where} a market of another scenario, seed or setting; repeat those to go on "
                "with it, or name another `out`"
            )
    elif begun:
        raise InputError(f"{out} holds a run whose clients were not here; name another `out`")
    if not begun and any(folder.glob(f"*/{FILE}")):
        raise InputError(
            f"{folder} has the owners' ledgers of a run that is not in {out} any more; delete "
            f"{folder} as well, or name another `out`"
        )


def follow(
    market: LocalMarket, number: str, out: Path, total: int, progress: Progress | None
) -> None:
    """Waits for the end of a run; raises what its server said if it failed."""
    done, heard, before = 0, time.monotonic(), _written(out)
    while _outcome(out) != "finished":
        time.sleep(LOOK)
        start = read_checkpoint(out) if out.exists() else None
        if start is not None and sum(start.facts.rounds) > done:
            done, heard = sum(start.facts.rounds), time.monotonic()
            if progress is not None:
                progress(done, total)
        begun = _written(out) != before
        silence = 0.0 if begun and _outcome(out) in ("failed", "interrupted") else SILENCE
        if time.monotonic() - heard > (LONG_SILENCE if begun and silence else silence):
            heard = time.monotonic()
            if "finished" in market.status(number) and _outcome(out) != "finished":
                raise FlmarketError(
                    f"the server of {out} failed: {market.words(number)} "
                    f"(logs are in {market.folder})"
                )
    if progress is not None:
        progress(total, total)


def _written(out: Path) -> int:
    """When run.json of a directory was written last, in nanoseconds; 0: never."""
    path = out / "run.json"
    return path.stat().st_mtime_ns if path.exists() else 0


def _outcome(out: Path) -> str:
    """How the run in a directory has ended; "" before it has begun."""
    return str(read_info(out).get("outcome")) if (out / "run.json").exists() else ""


def _program(entry: str) -> list[str]:
    """A program of Flower, by its entry point, in this Python."""
    module, _, name = entry.partition(":")
    return [sys.executable, "-c", f"from {module} import {name}; {name}()"]


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _answers(host: str, port: int) -> bool:
    with socket.socket() as one:
        one.settimeout(LOOK)
        return one.connect_ex((host, port)) == 0


def _close(inputs: list[IO[bytes]]) -> None:
    """Ends the inputs of processes: a hint to end, which the owners' processes take."""
    for one in inputs:
        with suppress(OSError):
            one.close()


def _end(process: subprocess.Popen[bytes], patience: float) -> None:
    """Ends a process: by itself within `patience` seconds, or by being asked, or at once."""
    for ask, seconds in ((None, patience), (process.terminate, ENDING), (process.kill, None)):
        if ask is not None and process.poll() is None:
            ask()
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
            return
