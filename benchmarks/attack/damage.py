"""`damage`: one damage at a time to a finished or unfinished result, read by every reader.

A reader may refuse the damage by name, or return what it returned before. For an unfinished run it
may also return a beginning of the log: that is what a kill leaves. Everything else is bad.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from flmarket_sim.errors import FlmarketError

from .damages import Damage, damage
from .digests import digest
from .outcome import Failure, Outcome, Progress
from .readers import Reader, readers_of
from .specimens import KILLED, Specimen, make_all, specimens
from .watched import Lost, perform

REFUSED, HARMLESS, BEGINNING = "refused", "harmless", "a beginning"
SILENT, UNNAMED, CRASH, MEMORY, LOST = (
    "SILENT CHANGE",
    "refused without a name",
    "crash",
    "out of memory",
    "hang or death",
)
BAD = (SILENT, UNNAMED, CRASH, MEMORY, LOST)
VERDICTS = (REFUSED, HARMLESS, BEGINNING, *BAD)
Baseline = dict[str, Any]  # what each reader returned of the undamaged folder


class Verdict(NamedTuple):
    reader: str
    verdict: str
    detail: str = ""


class Judged(NamedTuple):
    """One damage, and what each reader made of it."""

    specimen: str
    damage: str
    files: list[str]
    verdicts: list[Verdict]


class DamageTrials:
    """Damages copies of specimens. Trial number i of a seed is always the same."""

    def __init__(self, root: Path, scratch: Path, seed: int, without: Collection[str] = ()) -> None:
        self.seed, self.scratch = seed, Path(tempfile.mkdtemp(dir=scratch))
        self.specimens, self.without = specimens(root), without
        self._baselines: dict[str, Baseline] = {}

    def __call__(self, index: int) -> Judged:
        chance = random.Random(f"{self.seed} {index}")
        specimen = chance.choice(self.specimens)
        subject, readers = self.scratch / specimen.name, self.readers(specimen)
        if specimen.name not in self._baselines:
            self._baselines[specimen.name] = baseline(specimen, subject, readers)
        renew(specimen, subject)
        done = damage(subject, specimen.twin, chance)
        before = self._baselines[specimen.name]
        verdicts = judge(specimen.kind, subject, done, before, readers)
        files = [path.relative_to(subject).as_posix() for path in done.files]
        return Judged(specimen.name, done.what, files, verdicts)

    def readers(self, specimen: Specimen) -> dict[str, Reader]:
        every = readers_of(specimen.kind)
        return {name: reader for name, reader in every.items() if name not in self.without}


def renew(specimen: Specimen, subject: Path) -> None:
    shutil.rmtree(subject, ignore_errors=True)
    shutil.copytree(specimen.whole, subject)


def baseline(specimen: Specimen, subject: Path, readers: dict[str, Reader]) -> Baseline:
    """What the readers say of the undamaged folder; they must say the same again."""
    found = []
    for _ in range(2):
        renew(specimen, subject)
        found.append({name: _read(reader, subject) for name, reader in readers.items()})
    if unsteady := [name for name in found[0] if found[0][name] != found[1][name]]:
        raise RuntimeError(f"{specimen.name}: {unsteady} differ from one reading to the next")
    return found[0]


def judge(
    kind: str, subject: Path, done: Damage, before: Baseline, readers: dict[str, Reader]
) -> list[Verdict]:
    """The verdict on every reader."""
    verdicts: list[Verdict] = []
    for name, reader in readers.items():
        shorter = any(one.verdict == BEGINNING for one in verdicts)
        compare = _compared if kind == KILLED and name != "resume" else _same
        verdict, detail = _judged(reader, subject, done, partial(compare, before[name], shorter))
        verdicts.append(Verdict(name, verdict, detail))
    return verdicts


def _judged(
    reader: Reader, subject: Path, done: Damage, compare: Callable[[Any], str]
) -> tuple[str, str]:
    try:
        return compare(_read(reader, subject)), ""
    except FlmarketError as error:
        message = str(error)
        return (REFUSED if _names(message, subject, done) else UNNAMED), message[:300]
    except MemoryError as error:
        return MEMORY, repr(error)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        return CRASH, f"{type(error).__name__} at {where}: {error}"[:300]


def _read(reader: Reader, subject: Path) -> Any:
    """A chain of digests as it is, and the digest of everything else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = reader(subject)
    is_chain = isinstance(found, tuple)
    return found if is_chain else digest(found)


def _same(before: Any, shorter: bool, now: Any) -> str:
    return HARMLESS if now == before else SILENT


def _compared(before: Any, shorter: bool, now: Any) -> str:
    """Of an unfinished run: the whole, or a beginning of it.

    Where the log is read as a beginning only, its sums and pages are those of the beginning.
    """
    if now == before:
        return HARMLESS
    if isinstance(now, tuple):
        return BEGINNING if now == before[: len(now)] else SILENT
    return BEGINNING if shorter else SILENT


def _names(message: str, subject: Path, done: Damage) -> bool:
    """Whether a message names a damaged file or the folder of the result."""
    told = " ".join(message.split())
    return str(subject) in told or any(path.name in told for path in done.files)


def attack(
    count: int, seed: int, workers: int, progress: Progress, only: int | None = None
) -> Outcome:
    """So many damages, or the one with the number `only`."""
    outcome, began = Outcome("damage"), time.monotonic()
    indices = range(count) if only is None else [only]
    tally: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory(prefix="flmarket-attack-") as name:
        root, scratch = Path(name) / "specimens", Path(name) / "scratch"
        root.mkdir()
        scratch.mkdir()
        make_all(root)
        trials = partial(DamageTrials, root, scratch, seed)
        for index, judged in perform(trials, indices, workers):
            outcome.trials += 1
            again = f"python -m benchmarks.attack damage --seed {seed} --only {index}"
            if isinstance(judged, Lost):
                tally["any", LOST] += 1
                outcome.failures.append(Failure(index, LOST, judged.why, again))
            else:
                count_in(outcome, tally, index, judged, again)
            progress(outcome.trials, len(indices), len(outcome.failures))
    outcome.rows = table(tally)
    outcome.seconds = time.monotonic() - began
    return outcome


def count_in(
    outcome: Outcome, tally: Counter[tuple[str, str]], index: int, judged: Judged, again: str
) -> None:
    for reader, verdict, detail in judged.verdicts:
        tally[reader, verdict] += 1
        if verdict in BAD:
            file = Path(judged.files[0])
            sort = f"{verdict}: {reader} of {judged.specimen}, {file.name}"
            what = f"{judged.damage} in {', '.join(judged.files[:2])}"
            told = f"{what}: {detail}" if detail else what
            outcome.failures.append(Failure(index, sort, told, again))


def table(tally: Counter[tuple[str, str]]) -> list[dict[str, Any]]:
    """A row for each reader and one for all of them; verdicts that never occurred are left out."""
    shown = [verdict for verdict in VERDICTS if any(found == verdict for _, found in tally)]
    readers = list(dict.fromkeys(reader for reader, _ in tally))
    rows = [
        {"reader": name} | {verdict: tally[name, verdict] for verdict in shown} for name in readers
    ]
    sums = {verdict: sum(row[verdict] for row in rows) for verdict in shown}
    return [*rows, {"reader": "all", **sums}]
