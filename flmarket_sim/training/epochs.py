"""A training from start to end, whatever is trained: epochs, a state beside the weights to go on from, metrics."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from flmarket_sim.auctions.learned import weight_files
from flmarket_sim.auctions.learned.weight_files import Learned
from flmarket_sim.errors import InputError, shortened
from flmarket_sim.storage.atomic_files import disk_error, write_whole
from flmarket_sim.storage.result_folders import alone

OTHER_TRAINING = "the training to resume was of another mechanism, rule, seed or scenario, or had other settings; name another --out"
AGAIN = "Free some space; the same command then goes on from the last epoch"
Progress = Callable[[int, int, dict[str, float]], None]


class Steps(Protocol):
    """What is trained: one step at a time, its state as tensors and plain data, a row of metrics an epoch."""

    step: int
    history: list[dict[str, float]]

    def advance(self) -> dict[str, float]: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...


def run_epochs(
    trainer: Steps, steps: int, steps_per_epoch: int, out: Path, progress: Progress | None
) -> None:
    """Takes all steps, from where an unfinished training beside `out` was left. No other process trains into `out` meanwhile."""
    with alone(
        out.with_name(f".{out.name}.lock"),
        f"another process is training into {out}; name another --out",
    ):
        _steps(trainer, steps, steps_per_epoch, out, progress)


def _steps(
    trainer: Steps, steps: int, steps_per_epoch: int, out: Path, progress: Progress | None
) -> None:
    unfinished = _unfinished(out)
    if unfinished.exists():
        _restore(trainer, unfinished, steps)
    recent: list[dict[str, float]] = []
    while trainer.step < steps:
        recent.append(trainer.advance())
        if trainer.step % steps_per_epoch == 0 or trainer.step == steps:
            means = {key: sum(row[key] for row in recent) / len(recent) for key in recent[0]}
            trainer.history.append({"step": float(trainer.step), **means})
            recent = []
            _save(trainer.state(), unfinished)
        if progress is not None:
            progress(trainer.step, steps, trainer.history[-1] if trainer.history else {})


def keep(learned: Learned, history: list[dict[str, float]], out: Path) -> Learned:
    """Writes weights and metrics; the state to go on from is not needed any more."""
    metrics = out.with_suffix(".metrics.parquet")
    try:
        write_whole(metrics, lambda fresh: pq.write_table(pa.Table.from_pylist(history), fresh))
        weight_files.save(out, learned)
    except OSError as error:
        raise disk_error(out, error, AGAIN) from error
    _unfinished(out).unlink(missing_ok=True)
    return learned


def _save(state: dict[str, Any], unfinished: Path) -> None:
    try:
        write_whole(unfinished, lambda fresh: torch.save(state, fresh))
    except (
        OSError,
        RuntimeError,
    ) as error:  # torch has an error of its own for a disk that is full
        cause = (
            error if isinstance(error, OSError) else OSError(errno.EIO, str(error).splitlines()[0])
        )
        raise disk_error(unfinished, cause, AGAIN) from error


def _restore(trainer: Steps, unfinished: Path, steps: int) -> None:
    try:
        state = torch.load(unfinished, weights_only=True)
        if (
            not isinstance(state["step"], int)
            or not 0 < state["step"] <= steps
            or not _is_history(state["history"])
        ):
            raise ValueError("steps or metrics that cannot be")
        trainer.restore(state)
    except InputError:
        raise
    except Exception as error:  # torch has many ways to say that a file is none of its own
        reason = shortened(str(error).strip().split("\n")[0])
        raise InputError(
            f"{unfinished} is damaged ({reason}); delete it, and the training begins anew"
        ) from None


def _is_history(found: Any) -> bool:
    rows = found if isinstance(found, list) else [None]
    return all(
        isinstance(row, dict) and all(isinstance(value, float) for value in row.values())
        for row in rows
    )


def _unfinished(out: Path) -> Path:
    return out.with_name(out.name + ".training")
