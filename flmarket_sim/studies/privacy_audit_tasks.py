"""The audit of a perturbation as tasks of the engine: each batch of draws is a task."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from flmarket_sim.experiments.task import task_key
from flmarket_sim.perturbation.perturbation import Perturbation, delta_of
from flmarket_sim.plugins.registry import perturbations
from flmarket_sim.privacy.noise import create_noise
from flmarket_sim.privacy.privacy_audit import (
    ONE_BY_ONE,
    AuditResult,
    Batch,
    Hits,
    PrivacyClaim,
    audit_batches,
    audit_result,
)
from flmarket_sim.randomness import Streams


@dataclass(frozen=True)
class DrawsTask:
    """One batch of draws of a perturbation, which has a name and options (as JSON)."""

    batch: Batch
    perturbation: str
    options: str

    @property
    def key(self) -> str:
        content = json.dumps(asdict(self.batch))
        return task_key("privacy audit", self.perturbation, self.options, content)

    @property
    def label(self) -> str:
        batch, which = self.batch, "first" if self.batch.first else "second"
        loss = batch.claim.privacy_loss
        return f"e = {loss:g}, the {which} gradient, draw {batch.begin:,} on"


def audit_tasks(
    name: str,
    options: dict[str, Any],
    losses: Sequence[float],
    claim: PrivacyClaim,
    draws: int,
    one_by_one: int = ONE_BY_ONE,
) -> list[DrawsTask]:
    """The tasks of one audit for each distinct claimed privacy loss; that of `claim` is not used.

    Raises InputError at once if the perturbation does not exist or has no such noise.
    """
    text = json.dumps(options, sort_keys=True)
    perturbation = made(name, text)
    create_noise(claim.noise, perturbation, claim.clip, Streams(claim.seed))
    return [
        DrawsTask(batch, name, text)
        for loss in dict.fromkeys(losses)
        for batch in audit_batches(
            perturbation, replace(claim, privacy_loss=loss), draws, one_by_one
        )
    ]


def count_hits(task: DrawsTask) -> Hits:
    return task.batch.hits(made(task.perturbation, task.options))


def audit_results(
    tasks: Sequence[DrawsTask], hits: Sequence[Sequence[int]], confidence: float
) -> list[AuditResult]:
    """The result for each claimed privacy loss, from the hits of all tasks."""
    by_loss: dict[float, list[tuple[Batch, Hits]]] = {}
    for task, count in zip(tasks, hits, strict=True):
        found = (int(count[0]), int(count[1]))
        by_loss.setdefault(task.batch.claim.privacy_loss, []).append((task.batch, found))
    delta = delta_of(made(tasks[0].perturbation, tasks[0].options))
    return [audit_result(counts, confidence, delta) for counts in by_loss.values()]


@lru_cache(maxsize=8)
def made(name: str, options: str) -> Perturbation:
    """The perturbation of a task."""
    perturbation: Perturbation = perturbations.create(name, **json.loads(options))
    return perturbation
