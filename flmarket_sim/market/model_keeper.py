"""Keeps the buyers' models of a run in files, as `[log] models` says."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import FlmarketError
from flmarket_sim.eventlog.model_files import KeptModel, encoded, model_path, write_model
from flmarket_sim.eventlog.parquet_log import ADVICE, OTHERWISE
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.storage.atomic_files import disk_error

Floats = NDArray[np.float64]
Digests = NDArray[np.uint8]


class ModelKeeper:
    """Writes each model that is due, and knows the hashes of all that were written.

    `digests` has, for each buyer, the SHA-256 of her kept models by the number of finished rounds.
    """

    def __init__(self, run: Path, scenario: Scenario) -> None:
        self.run, self.scenario = run, scenario
        self.buyers = scenario.resolved_buyers()
        self.digests: list[dict[int, bytes]] = [{} for _ in self.buyers]

    def keeps(self, buyer: int) -> bool:
        """Whether any model of a buyer is kept."""
        return self.scenario.log.models != "never" and self.buyers[buyer].model.name != "none"

    def due(self, buyer: int, rounds: int) -> bool:
        """Whether the model of a buyer is kept as it is after so many rounds.

        "evaluated" keeps the model before and after each evaluated round, because all numbers of a
        round follow from these two; and the first model.
        """
        model, total = self.buyers[buyer].model, self.scenario.rounds
        return self.keeps(buyer) and (
            self.scenario.log.models == "every"
            or rounds == 0
            or model.evaluated(rounds - 1, total)
            or model.evaluated(rounds, total)
        )

    def keep(
        self,
        buyer: int,
        rounds: int,
        parameters: Floats,
        gradient: Floats | None,
        average: Floats | None = None,
    ) -> None:
        """Writes a model. A resumed run may find its file, which must be the same."""
        name = self.buyers[buyer].name
        content = encoded(KeptModel(name, rounds, parameters, gradient, average))
        path = model_path(self.run, buyer, rounds)
        try:
            if not path.exists():
                write_model(path, content)
            elif path.read_bytes() != content:
                raise FlmarketError(f"{path} is not what this run writes there: {OTHERWISE}")
        except OSError as error:
            raise disk_error(path, error, ADVICE) from error
        self.digests[buyer][rounds] = hashlib.sha256(content).digest()

    def saved(self, buyer: int) -> Digests:
        """(k, 32) the hashes of a buyer's k models in order of rounds, for a checkpoint."""
        joined = b"".join(digest for _, digest in sorted(self.digests[buyer].items()))
        return np.frombuffer(joined, np.uint8).reshape(-1, 32)

    def restore(self, buyer: int, done: int, saved: Digests) -> Path | None:
        """Takes a buyer's models back to those after `done` rounds, and reads their files again.

        Returns the first file that is lost or damaged; None if all are whole. Raises ValueError if
        the hashes cannot be those of so many rounds.
        """
        rounds = [number for number in range(done + 1) if self.due(buyer, number)]
        if saved.dtype != np.uint8 or saved.shape != (len(rounds), 32):
            raise ValueError(f"{saved.shape} hashes of {len(rounds)} models")
        for number, row in zip(rounds, saved, strict=True):
            path, digest = model_path(self.run, buyer, number), row.tobytes()
            if not path.exists() or hashlib.sha256(path.read_bytes()).digest() != digest:
                return path
            self.digests[buyer][number] = digest
        return None

    def summary(self) -> dict[str, dict[str, str]]:
        """The hashes by name of the buyer and finished rounds, for run.json; empty if none."""
        return {
            spec.name: {str(rounds): digest.hex() for rounds, digest in sorted(kept.items())}
            for spec, kept in zip(self.buyers, self.digests, strict=True)
            if kept
        }


def keep_first_models(keeper: ModelKeeper, parameters: Sequence[Floats | None]) -> None:
    """Keeps the models with which the buyers begin, given by buyer; None where there is none."""
    for buyer, first in enumerate(parameters):
        if first is not None and keeper.due(buyer, 0):
            keeper.keep(buyer, 0, first, None)
