"""Which kind of result a path is: a run, a sweep, a study, or a probe's file."""

from __future__ import annotations

from pathlib import Path

from flmarket_sim.errors import InputError
from flmarket_sim.report.html import from_probe, from_run, from_study, from_sweep
from flmarket_sim.report.html.parts import Source

KINDS = (
    "a run (run.json), a sweep (sweep.json), a study (study.json), or the Parquet file of a probe"
)


def read(path: Path) -> Source:
    if path.is_file():
        if path.suffix != ".parquet":
            raise InputError(f"{path} is not something to report on: that is {KINDS}")
        return from_probe.read(path)
    if not path.is_dir():
        raise InputError(f"there is no {path}")
    if (path / "sweep.json").exists():
        if not (path / "summary.parquet").exists():
            raise InputError(f"{path} is a sweep without summary.parquet: it has not finished")
        return from_sweep.read(path)
    if (path / "study.json").exists():
        return from_study.read(path)
    if (path / "run.json").exists():
        return from_run.read(path)
    raise InputError(f"{path} is not something to report on: that is {KINDS}")
