"""The kept models in a participant's view: a buyer's own, and those that others were sent."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from flmarket_sim.eventlog.model_files import (
    buyer_names,
    encoded,
    model_path,
    read_models,
    write_model,
)
from flmarket_sim.eventlog.participants import Participant
from flmarket_sim.eventlog.reader import read_run
from flmarket_sim.eventlog.record import Role
from flmarket_sim.eventlog.schema import buyer_id
from flmarket_sim.eventlog.visibility import SEES_DELIVERED_GRADIENT


def write_models(
    run: Path, view: Path, viewer: Participant, messages: Iterable[pa.Table]
) -> dict[str, dict[str, str]]:
    """Writes the models that the viewer sees. Returns their hashes by buyer and finished rounds.

    `messages` are the events with which parameters reach her role. A round r of a buyer begins with
    her model after r rounds, so that is the model in the messages of round r. An owner is not sent
    the gradient that led to a model, and nobody is sent the mean of a buyer's models.
    """
    sent, numbers = _received(viewer, messages), buyer_names(read_run(run), run)
    written: dict[str, dict[str, str]] = {}
    for kept in read_models(run):
        index = numbers.index(kept.buyer)
        own = viewer.role == Role.BUYER and viewer.number == buyer_id(index)
        if own or (kept.buyer, kept.rounds) in sent:
            gradient = kept.gradient if viewer.role in SEES_DELIVERED_GRADIENT else None
            content = encoded(
                replace(kept, gradient=gradient, average=kept.average if own else None)
            )
            write_model(model_path(view, index, kept.rounds), content)
            hashes = written.setdefault(kept.buyer, {})
            hashes[str(kept.rounds)] = hashlib.sha256(content).hexdigest()
    return written


def _received(viewer: Participant, messages: Iterable[pa.Table]) -> set[tuple[str, int]]:
    """Buyer and round of every message that the viewer received."""
    received: set[tuple[str, int]] = set()
    for table in messages:
        hers = table.filter(pa.array(viewer.is_in(np.asarray(table.column("receiver")))))
        names, rounds = hers.column("buyer").to_pylist(), hers.column("round").to_pylist()
        received |= set(zip(names, rounds, strict=True))
    return received
