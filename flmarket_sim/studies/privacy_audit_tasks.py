"""The audit of the market's noise as tasks of the engine: each batch of draws is a task."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial

from flmarket_sim.experiments.task import task_key
from flmarket_sim.privacy.privacy_audit import (
    AuditResult,
    Batch,
    audit_batches,
    audit_result,
    released,
)


@dataclass(frozen=True)
class NoiseTask:
    """One batch of draws of the market's own release, with simulation or hardened noise."""

    batch: Batch
    noise: str

    @property
    def key(self) -> str:
        return task_key("privacy audit", self.noise, json.dumps(asdict(self.batch)))

    @property
    def label(self) -> str:
        batch = self.batch
        return f"e = {batch.privacy_loss:g}, input {batch.sign:+d} e_1, draw {batch.begin:,} on"


def noise_tasks(
    losses: Sequence[float], clip: float, draws: int, seed: int, noise: str
) -> list[NoiseTask]:
    """The tasks of one audit for each distinct claimed privacy loss."""
    return [
        NoiseTask(batch, noise)
        for loss in dict.fromkeys(losses)
        for batch in audit_batches(loss, clip, draws, seed)
    ]


def count_hits(task: NoiseTask) -> int:
    return task.batch.hits(partial(released, noise=task.noise))


def audit_results(
    tasks: Sequence[NoiseTask], hits: Sequence[int], confidence: float
) -> list[AuditResult]:
    """The result for each claimed privacy loss, from the hits of all tasks."""
    by_loss: dict[float, list[tuple[Batch, int]]] = {}
    for task, count in zip(tasks, hits, strict=True):
        by_loss.setdefault(task.batch.privacy_loss, []).append((task.batch, count))
    return [audit_result(counts, confidence) for counts in by_loss.values()]
