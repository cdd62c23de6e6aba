"""Sweeps on a cluster: a real scheduler and workers as processes of their own on loopback, which
are lost, unfit, or not there."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress

import pytest

import flmarket_sim as fm
from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.experiments import dask_places
from flmarket_sim.experiments.packed_folder import pack, unpack
from flmarket_sim.experiments.worker_processes import Processes
from flmarket_sim.storage.sealed_files import SEAL
from flmarket_sim.sweep.sweep_plan import parse_sweep
from flmarket_sim.sweep.sweep_runs import run_sweep
from tests.support.command_line import flmarket
from tests.support.paths import ROOT
from tests.support.patience import wait_until
from tests.sweep.test_sweep import MARKET, SWEEP

pytest.importorskip("dask_jobqueue", reason="sweeps on clusters need the extra [cluster]")

import dask
import psutil
import yaml

from flmarket_sim.experiments.dask_places import crew_at, parse_options, slurm_cluster

pytestmark = pytest.mark.processes
FOREIGN = '''
import os, signal, time
from flmarket_sim.auctions.all_in import AllIn

class Slow(AllIn):
    """Takes its time, and keeps a list of its auctions."""
    name = "slow"
    def decide(self, bids, budget, rng):
        with open(os.environ["AUCTIONS"], "a") as file:
            file.write(f"{os.getpid()}\\n")
        time.sleep(0.15)
        return super().decide(bids, budget, rng)

class Kills(AllIn):
    """Ends its own process."""
    name = "kills"
    def decide(self, bids, budget, rng):
        os.kill(os.getpid(), signal.SIGKILL)

class TakesAllDown(AllIn):
    """Ends the worker, as a job does that has used up its memory."""
    name = "takes-all-down"
    def decide(self, bids, budget, rng):
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
'''
SCHEDULER = "from distributed.cli.dask_scheduler import main; main()"
WORKER = "from distributed.cli.dask_worker import main; main()"
NO_FLMARKET = "import sys; sys.modules['flmarket_sim'] = None; " + WORKER
OTHER_NUMPY = (
    "import importlib.metadata as m; real = m.version; "
    "m.version = lambda n: '1.26.4' if n == 'numpy' else real(n); " + WORKER
)


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    (tmp_path / "far_auctions.py").write_text(FOREIGN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("AUCTIONS", str(tmp_path / "auctions.txt"))


@pytest.fixture(scope="module")
def near(tmp_path_factory):
    """The summary of MARKET and SWEEP as two processes of this machine write it."""
    folder = tmp_path_factory.mktemp("near")
    run_sweep(parse_sweep(MARKET + SWEEP), folder / "s", workers=2)
    return (folder / "s/summary.parquet").read_bytes()


class Cluster:
    """A scheduler and its workers; everything on 127.0.0.1, on ports that the system chooses."""

    def __init__(self, folder, **config):
        self.folder, self.processes = folder, []
        self.env = os.environ | {
            f"DASK_DISTRIBUTED__{name}": value for name, value in config.items()
        }
        file = folder / "scheduler.json"
        told = [
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--dashboard-address",
            "127.0.0.1:0",
        ]
        self.scheduler = self._start(SCHEDULER, *told, "--scheduler-file", str(file))
        wait_until(
            lambda: file.exists() and file.read_text().rstrip().endswith("}")
        )  # it is there before it is written
        self.address = json.loads(file.read_text())["address"]

    def worker(self, code=WORKER, *options):
        told = [
            "--host",
            "127.0.0.1",
            "--nthreads",
            "1",
            "--no-dashboard",
            "--local-directory",
            str(self.folder / "scratch"),
        ]
        return self._start(code, self.address, *told, *(options or ["--no-nanny"]))

    def _start(self, code, *arguments):
        command = [sys.executable, "-c", code, *arguments]
        with open(self.folder / "dask.log", "ab") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, env=self.env, cwd=self.folder
            )
        self.processes.append(process)
        return process

    def close(self):
        for process in self.processes:
            family = []
            with suppress(psutil.NoSuchProcess):
                family = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            process.wait()
            for child in family:
                with suppress(psutil.NoSuchProcess):
                    child.kill()


@contextmanager
def cluster(folder, **config):
    folder.mkdir(exist_ok=True)
    made = Cluster(folder, **config)
    try:
        yield made
    finally:
        made.close()


def same_logs(one, other):
    """All files of all runs have the same bytes; run.json has wall seconds in it, and else the
    same content."""
    names = sorted(path.relative_to(one).as_posix() for path in one.rglob("*") if path.is_file())
    assert names == sorted(
        path.relative_to(other).as_posix() for path in other.rglob("*") if path.is_file()
    )
    for name in names:
        ours, theirs = (one / name).read_bytes(), (other / name).read_bytes()
        if name.endswith("run.json"):
            ours, theirs = (
                {**json.loads(text), "wall_seconds": 0, SEAL: 0} for text in (ours, theirs)
            )
        assert ours == theirs, name
    return len(names)


def slow_sweep(seeds=10, more=""):
    return parse_sweep(
        MARKET
        + f"[sweep]\nseeds = {seeds}\n{more}[sweep.grid]\n'auction.name' = ['far_auctions:Slow']\n"
    )


def test_a_worker_killed_while_it_works_costs_its_current_run_and_not_a_byte(tmp_path, foreign):
    plan, killed = slow_sweep(more="keep_events = true\n"), []
    with cluster(tmp_path / "dask") as made:
        workers = [made.worker(), made.worker()]

        def after(done, total):
            if done == 4:
                (process,) = [
                    p
                    for p in psutil.Process(workers[0].pid).children()
                    if "spawn_main" in " ".join(p.cmdline())
                ]
                mine = str(
                    process.pid
                )  # three auctions a run: one that has begun some and not all of them is at work
                wait_until(
                    lambda: (tmp_path / "auctions.txt").read_text().split().count(mine) % 3 > 0
                )
                workers[0].send_signal(signal.SIGKILL)
                killed.append(process)

        table = run_sweep(plan, tmp_path / "far", progress=after, crew=crew_at(made.address))
    auctions = len((tmp_path / "auctions.txt").read_text().split())
    assert 30 < auctions <= 36, (
        "three rounds a run: its current one, and at most one that was done and not yet told of"
    )
    wait_until(lambda: not killed[0].is_running() or killed[0].status() == psutil.STATUS_ZOMBIE)
    near = run_sweep(plan, tmp_path / "near", workers=2)
    assert table.equals(near) and table.column("run").to_pylist() == [run.id for run in plan.runs]
    assert (tmp_path / "far/summary.parquet").read_bytes() == (
        tmp_path / "near/summary.parquet"
    ).read_bytes()
    assert same_logs(tmp_path / "far/runs", tmp_path / "near/runs") > 100


def test_runs_that_end_their_process_or_their_worker_are_rows_and_the_rest_goes_on(
    tmp_path, foreign
):
    names = ["all-in", "far_auctions:Kills", "far_auctions:TakesAllDown", "pay-as-bid"]
    text = MARKET + f"[sweep]\n[sweep.grid]\n'auction.name' = {names}\n"
    with cluster(tmp_path / "dask", SCHEDULER__ALLOWED_FAILURES="0") as made:
        made.worker(WORKER, "--nanny")
        rows = run_sweep(
            parse_sweep(text), tmp_path / "far", crew=crew_at(made.address)
        ).to_pylist()
    mild = parse_sweep(
        text, overrides=[f"sweep.grid.auction.name={json.dumps(names[:2] + names[3:])}"]
    )
    assert rows[:2] + rows[3:] == run_sweep(mild, tmp_path / "near", workers=1).to_pylist()
    assert [row["outcome"] for row in rows] == ["finished", "failed", "failed", "finished"]
    assert rows[1]["stage"] == rows[2]["stage"] == "worker" and "signal 9" in rows[1]["message"]
    assert "lost the worker that had this task, and nothing else" in rows[2]["message"]


def test_a_scheduler_that_goes_away_is_said_and_what_was_done_is_not_done_again(tmp_path, foreign):
    plan, heard = slow_sweep(8), []
    with cluster(tmp_path / "dask") as made:
        made.worker()
        with pytest.raises(
            FlmarketError, match=r"scheduler at .* went away.* the same command does the rest"
        ):
            run_sweep(
                plan,
                tmp_path / "s",
                progress=lambda n, _: n == 3 and made.scheduler.kill(),
                crew=crew_at(made.address),
            )
    done = fm.read_sweep(tmp_path / "s").num_rows
    assert 3 <= done < 8
    run_sweep(plan, tmp_path / "s", workers=2, progress=lambda *told: heard.append(told))
    assert heard[0] == (done, 8) and fm.read_sweep(tmp_path / "s").num_rows == 8


def test_workers_that_would_give_other_results_are_refused_with_the_difference(tmp_path):
    plan = parse_sweep(MARKET + SWEEP)
    with cluster(tmp_path / "dask") as made:
        with pytest.raises(FlmarketError, match=r"no worker at .* for 0\.5 s.*`dask worker"):
            run_sweep(plan, tmp_path / "s", crew=crew_at(made.address, patience=0.5))
        other = made.worker(OTHER_NUMPY)
        with pytest.raises(
            FlmarketError,
            match=r"it has numpy 1\.26\.4 instead of \d.*None of its results was taken",
        ):
            run_sweep(plan, tmp_path / "s", crew=crew_at(made.address))
        other.kill()
        other.wait()
        made.worker(NO_FLMARKET)
        with pytest.raises(FlmarketError, match="it cannot import flmarket_sim"):
            run_sweep(plan, tmp_path / "s", crew=crew_at(made.address))
    assert fm.read_sweep(tmp_path / "s").num_rows == 0


def test_wrong_places_are_refused_in_one_paragraph(tmp_path, monkeypatch):
    monkeypatch.setattr(dask_places, "CONNECT_SECONDS", 0.5)
    with pytest.raises(InputError, match=r"no scheduler answers at tcp://127\.0\.0\.1:9"):
        run_sweep(parse_sweep(MARKET + SWEEP), tmp_path / "s", crew=crew_at("tcp://127.0.0.1:9"))
    with pytest.raises(InputError, match="name a scheduler's address"):
        crew_at("somewhere")
    with pytest.raises(InputError, match="are there already"):
        crew_at("tcp://127.0.0.1:9", workers=2)
    with pytest.raises(InputError, match="is for `cluster` slurm"):
        crew_at("local", options=["cores=2"])
    with pytest.raises(InputError, match="KEY=VALUE"):
        parse_options(["cores"])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="sbatch"):
        slurm_cluster({})


def test_the_command_line_runs_on_local_workers_and_says_what_is_missing(tmp_path, near):
    (tmp_path / "small.toml").write_text(MARKET + SWEEP)
    told = flmarket(
        "sweep", "small.toml", "--cluster", "local", "--workers", "2", "--out", "far", cwd=tmp_path
    )
    assert told.returncode == 0 and "Means over seeds" in told.stdout, told.stderr
    assert "distributed" not in told.stderr and "Traceback" not in told.stderr
    assert (tmp_path / "far/summary.parquet").read_bytes() == near
    code = (
        "import sys; sys.modules['distributed'] = None; sys.argv[0] = 'flmarket'; "
        "from flmarket_sim.cli import main; main()"
    )
    command = [sys.executable, "-c", code, "sweep", "small.toml", "--cluster", "local"]
    missing = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert missing.returncode == 2 and "pip install 'flmarket-sim[cluster]'" in missing.stderr, (
        missing.stderr
    )


SBATCH = """#!/bin/sh
# A stand-in for SLURM's command: the job is a process of this machine, in a group of its own.
cp "$1" "$FAKE_SLURM/script-$$.sh"
setsid bash "$FAKE_SLURM/script-$$.sh" > "$FAKE_SLURM/job-$$.log" 2>&1 &
echo "Submitted batch job $!"
echo $! >> "$FAKE_SLURM/jobs"
"""
SCANCEL = """#!/bin/sh
echo $1 >> "$FAKE_SLURM/cancelled"
kill -9 -- -$1
"""


@pytest.fixture
def fake_slurm(tmp_path, monkeypatch):
    """`sbatch` and `scancel` on the PATH start and end local processes; SLURM is not involved."""
    folder = tmp_path / "slurm"
    folder.mkdir()
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("FAKE_SLURM", str(folder))
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    yield folder
    for job in (folder / "jobs").read_text().split() if (folder / "jobs").exists() else ():
        with suppress(ProcessLookupError):
            os.killpg(int(job), signal.SIGKILL)


OPTIONS = [
    "cores=2",
    "memory=2GB",
    "interface=lo",
    "queue=short",
    "account=market",
    "walltime=00:10:00",
]


def test_a_slurm_job_is_one_worker_with_a_thread_for_each_core(fake_slurm):
    with slurm_cluster(parse_options([*OPTIONS, 'job_extra_directives=["--nice=100"]'])) as cluster:
        script = cluster.job_script()
    for line in (
        "-p short",
        "-A market",
        "-t 00:10:00",
        "--cpus-per-task=2",
        "--mem=2G",
        "--nice=100",
    ):
        assert f"#SBATCH {line}" in script
    assert (
        "distributed.cli.dask_worker tcp://127.0.0.1:" in script
        and "--nthreads 2" in script
        and "--nworkers" not in script
    )
    with pytest.raises(InputError, match="say how large a job is"):
        slurm_cluster({})
    with pytest.raises(InputError, match="unexpected keyword argument 'coers'"):
        slurm_cluster({"cores": 1, "memory": "1GB", "coers": 2})


def test_the_configuration_of_the_page_makes_the_job_that_it_says(
    tmp_path, fake_slurm, monkeypatch
):
    (text,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/clusters.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    read = dask.config.merge(dask.config.config, yaml.safe_load(text.replace("ib0", "lo")))
    with dask.config.set(read), slurm_cluster({}) as cluster:
        script = cluster.job_script()
    for line in (
        "-p standard",
        "-A my-project",
        "-t 04:00:00",
        "--cpus-per-task=16",
        "--mem=30G",
        "--nice=100",
    ):
        assert f"#SBATCH {line}" in script, script
    assert "module load" in script and "--nthreads 16" in script and "--nworkers" not in script


def test_a_sweep_through_sbatch_gives_the_same_bytes_and_cancels_its_jobs(
    tmp_path, fake_slurm, near
):
    plan = parse_sweep(MARKET + SWEEP)
    run_sweep(plan, tmp_path / "far", crew=crew_at("slurm", 1, OPTIONS))
    assert (tmp_path / "far/summary.parquet").read_bytes() == near
    jobs = (fake_slurm / "jobs").read_text().split()
    assert len(jobs) == 1 and set((fake_slurm / "cancelled").read_text().split()) == set(jobs)
    (fake_slurm / "sbatch").write_text("#!/bin/sh\necho 'invalid account' >&2\nexit 1\n")
    with pytest.raises(FlmarketError, match=r"could not be submitted.*invalid account"):
        run_sweep(plan, tmp_path / "refused", crew=crew_at("slurm", 1, OPTIONS))


def test_a_directory_as_bytes_comes_out_as_it_went_in_unless_it_is_too_large(tmp_path):
    files = {"run.json": b"{}", "events/kind=bid/part-00000.parquet": bytes(range(256))}
    unpack(files, tmp_path / "log")
    assert pack(tmp_path / "log") == files and pack(tmp_path / "nothing") == {}
    unpack({"run.json": b"again"}, tmp_path / "log")
    assert pack(tmp_path / "log") == {"run.json": b"again"}
    with pytest.raises(FlmarketError, match="not sent through a cluster"):
        pack(tmp_path / "log", largest=4)
    for name in ("../evil", "/evil", "a/../../evil"):
        with pytest.raises(FlmarketError, match="outside"):
            unpack({name: b""}, tmp_path / "other")


def test_a_sweep_on_one_machine_does_not_load_dask():
    code = (
        "import sys, flmarket_sim.sweep.sweep_runs, flmarket_sim.cli.app; "
        "sys.exit('distributed' in sys.modules or 'dask' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
    assert Processes(1).shares_disk
