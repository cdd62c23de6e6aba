"""What the workbench has started: runs, sweeps, studies and probes, as processes of their own.

A job goes on when the server ends, in whatever way. Its record in `.workbench/` tells the next
server which process it is, so that it can be watched and stopped again. Two jobs never write the
same result: a name is taken as soon as a record or a result has it.
"""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from flmarket_sim.errors import InputError
from flmarket_sim.eventlog import read_run
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.scenario_file import parse_scenario
from flmarket_sim.storage.atomic_files import write_text
from flmarket_sim.storage.result_folders import result_folder
from flmarket_sim.storage.untrusted_files import read_json
from flmarket_sim.sweep.sweep_plan import parse_sweep
from flmarket_sim.workbench import processes

HIDDEN = ".workbench"
AT_ONCE = 8  # jobs that may run at a time
TAIL = 4_000  # bytes of a job's output that are shown
WHAT = ("run", "sweep", "study")
NAME = re.compile(r"[^./\\\x00][^/\\\x00]{0,250}")  # of a result that a job writes


@dataclass(frozen=True)
class Job:
    """A process that writes one result."""

    name: str
    what: str
    process: int
    birth: str
    began: float


class Jobs:
    """The jobs of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.hidden = folder, folder / HIDDEN
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()

    def start(self, what: str, text: str) -> str:
        """Starts a run, sweep or study of a scenario text. Returns the name of its result."""
        if what not in WHAT:
            raise InputError(f"a scenario can be started as one of {', '.join(WHAT)}, not {what!r}")
        scenario = parse_scenario(text, "the scenario")
        if what == "study" and scenario.study is None:
            raise InputError("the scenario asks no question: a study needs a [study] table")
        if what == "sweep":
            parse_sweep(text, "the scenario")
        prefix = "" if what == "run" else f"{what}-"
        with self._lock:
            self._refuse_many()
            name = self._free(f"{prefix}{scenario.name}", scenario)
            file = self.hidden / f"{name}.toml"
            write_text(file, text)
            self._begin(what, name, [what, str(file), "--out", str(self.folder / name)])
        return name

    def start_probe(
        self, text: str, auction: str, profiles: int, effort: str, budgets: str, seed: int
    ) -> str:
        """Starts a probe of an auction on a scenario's market. Returns the name of its file."""
        scenario = parse_scenario(text, "the scenario")
        if not 1 <= profiles <= 10_000:
            raise InputError(f"a probe takes 1 to 10,000 markets, not {profiles}")
        with self._lock:
            self._refuse_many()
            name = self._free(f"probe-{auction}-{scenario.name}", scenario, ".parquet")
            file = self.hidden / f"{name}.toml"
            write_text(file, text)
            self._begin(
                "probe",
                name,
                [
                    "probe", "--scenario", str(file), "--profiles", str(profiles),
                    "--effort", effort, "--budgets", budgets, "--seed", str(seed),
                    "--out", str(self.folder / name), "--", auction,
                ],
            )  # fmt: skip
        return name

    def resume(self, name: str) -> None:
        """Continues a result that is not finished."""
        if "/" in name:
            raise InputError(f"{name} is a part of another result; resume that one")
        with self._lock:
            self._refuse_many()
            if self.running(name):
                raise InputError(f"{name} is running already")
            path = self.folder / name
            if (path / "run.json").exists():
                if read_run(path).get("outcome") == "finished":
                    raise InputError(f"{name} is finished: there is nothing to resume")
                self._begin("run", name, ["resume", str(path)])
                return
            file, job = self.hidden / f"{name}.toml", self.job(name)
            if job is None or not file.exists():
                raise InputError(
                    f"{name} was not started here, and its directory does not say how; the "
                    "command that began it continues it"
                )
            self._begin(job.what, name, [job.what, str(file), "--out", str(path)])

    def stop(self, name: str) -> None:
        """Asks a job to end: a run completes its round, and everything can be resumed."""
        job = self.job(name)
        if job is None or not self.running(name):
            raise InputError(f"no process that this workbench started is writing {name}")
        processes.interrupt(job.process)

    def job(self, name: str) -> Job | None:
        """The last job that wrote a result; None if the workbench did not start one."""
        if not NAME.fullmatch(name):
            return None
        try:
            return Job(**read_json(self.hidden / f"{name}.json"))
        except (FileNotFoundError, TypeError, InputError, OSError):
            return None

    def running(self, name: str) -> bool:
        """Whether a job is writing this result."""
        if (child := self._children.get(name)) is not None:
            if child.poll() is None:
                return True
            del self._children[name]
            return False
        job = self.job(name)
        return job is not None and bool(job.birth) and processes.birth(job.process) == job.birth

    def all(self) -> list[Job]:
        """Every job that has a record."""
        if not self.hidden.is_dir():
            return []
        found = [self.job(path.stem) for path in sorted(self.hidden.glob("*.json"))]
        return [job for job in found if job is not None]

    def output(self, name: str) -> str:
        """The end of what a job printed."""
        try:
            with (self.hidden / f"{name}.log").open("rb") as file:
                size = file.seek(0, 2)
                file.seek(max(0, size - TAIL))
                return file.read(TAIL).decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def _begin(self, what: str, name: str, arguments: list[str]) -> None:
        self.hidden.mkdir(parents=True, exist_ok=True)
        child = processes.start(arguments, self.hidden / f"{name}.log")
        self._children[name] = child
        job = Job(name, what, child.pid, processes.birth(child.pid), time.time())
        write_text(self.hidden / f"{name}.json", json.dumps(asdict(job)) + "\n")

    def _refuse_many(self) -> None:
        self.hidden.mkdir(parents=True, exist_ok=True)
        if sum(self.running(job.name) for job in self.all()) >= AT_ONCE:
            raise InputError(f"{AT_ONCE} jobs are running; stop one, or wait until one has ended")

    def _free(self, name: str, scenario: Scenario, ending: str = "") -> str:
        """A name that no result and no job has."""
        bare = re.sub(r"[^\w.-]+", "-", result_folder(name, scenario.digest()).name).lstrip(".")
        found, number = f"{bare}{ending}", 1
        while (self.folder / found).exists() or (self.hidden / f"{found}.json").exists():
            number += 1
            found = f"{bare}.{number}{ending}"
        return found
