"""Runs many inputs through one reader in a process of its own, and says what became of each.

A reader may take an input or refuse it with one of our errors. Everything else is a failure: another exception, a warning of an
operating system's signal, more than `SECONDS`, more than `MEMORY`, an endless message, or an attempt to start or delete something.
Input number i of a seed is always the same, so what killed the process can be made again.
"""

from __future__ import annotations

import multiprocessing
import random
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flmarket_sim.errors import FlmarketError

SECONDS = 10.0
MEMORY = 3 * 2**30  # beyond what the process has when it starts
LONGEST_MESSAGE = 20_000
FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "os.kill", "subprocess.Popen", "socket.connect", "pickle.find_class", "pty.spawn", "webbrowser.open")  # fmt: skip


@dataclass
class Failure:
    """What went wrong with input `index`; `place` is the same for inputs that fail alike."""

    index: int
    what: str
    place: str


@dataclass
class Tally:
    """What became of the inputs."""

    valid: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, -1)
    memory: int = 0

    @property
    def inputs(self) -> int:
        return self.valid + self.refused.total() + len(self.failures)


def generator(seed: int, index: int) -> random.Random:
    return random.Random(f"{seed} {index}")


def run(
    make_reader: Callable[[Path], Any],
    inputs: int,
    seed: int,
    progress: Callable[[Tally], None] = lambda _: None,
) -> Tally:
    """All inputs, in as many processes one after the other as it takes."""
    tally, start = Tally(), 0
    while start < inputs:
        start = _until_it_dies(make_reader, range(start, inputs), seed, tally, progress)
    return tally


def judge(reader: Any, data: bytes) -> str | None:
    """None where the input is valid, the name of the error's class where it is refused. Raises what is a failure."""
    try:
        reader.read(data)
    except FlmarketError as error:
        if len(str(error)) > LONGEST_MESSAGE:
            raise AssertionError(
                f"a message of {len(str(error)):,} characters: {str(error)[:200]}"
            ) from error
        return type(error).__name__
    return None


def _until_it_dies(
    make_reader: Callable[[Path], Any],
    indices: range,
    seed: int,
    tally: Tally,
    progress: Callable[[Tally], None],
) -> int:
    """Returns where to go on."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(
        prefix="fuzz", dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    ) as folder:
        process = context.Process(
            target=_work, args=(make_reader, Path(folder), indices, seed, theirs), daemon=False
        )
        process.start()
        theirs.close()
        if not ours.poll(120.0) or ours.recv() != "ready":
            raise RuntimeError("the reader's process did not start")
        index = indices.start
        while index < indices.stop:
            try:
                if not ours.poll(SECONDS):
                    process.kill()
                    tally.failures.append(
                        Failure(index, f"no answer within {SECONDS:g} seconds", "hang")
                    )
                    index += 1
                    break
                outcome, seconds, memory = ours.recv()
            except EOFError:
                process.join()
                tally.failures.append(
                    Failure(
                        index,
                        f"the process ended with exit code {process.exitcode}",
                        f"exit {process.exitcode}",
                    )
                )
                index += 1
                break
            if isinstance(outcome, tuple):
                tally.failures.append(Failure(index, *outcome))
            elif outcome is None:
                tally.valid += 1
            else:
                tally.refused[outcome] += 1
            tally.slowest, tally.memory = (
                max(tally.slowest, (seconds, index)),
                max(tally.memory, memory),
            )
            index += 1
            if index % 500 == 0:
                progress(tally)
        process.join()
    return index


def _work(
    make_reader: Callable[[Path], Any], folder: Path, indices: range, seed: int, pipe: Any
) -> None:
    reader = make_reader(folder)
    pages = (
        int(Path("/proc/self/statm").read_text().split()[0])
        if Path("/proc/self/statm").exists()
        else None
    )
    if pages is not None:
        resource.setrlimit(
            resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, resource.RLIM_INFINITY)
        )
    at_start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    attempts: list[str] = []
    sys.addaudithook(
        lambda event, args: (
            attempts.append(f"{event}{args}") if event.startswith(FORBIDDEN) else None
        )
    )
    pipe.send("ready")
    for index in indices:
        data = reader.make(generator(seed, index))
        began = time.perf_counter()
        outcome: Any
        try:
            outcome = judge(reader, data)
        except BaseException as error:  # what is looked for
            frames = [
                f for f in traceback.extract_tb(error.__traceback__) if "flmarket_sim" in f.filename
            ] or traceback.extract_tb(error.__traceback__)
            place = (
                f"{type(error).__name__} at {Path(frames[-1].filename).name}:{frames[-1].lineno}"
            )
            outcome = ("".join(traceback.format_exception(error, limit=-12))[-6000:], place)
        if attempts:
            outcome = (f"it tried {attempts}", f"attempt {attempts[0][:60]}")
            attempts.clear()
        pipe.send(
            (
                outcome,
                time.perf_counter() - began,
                resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - at_start,
            )
        )
