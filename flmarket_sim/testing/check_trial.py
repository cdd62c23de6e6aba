"""Where a check is tried: rounds of honest owners, and rounds in which little can be judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.checks.check import LEVEL, Evidence, PastRound
from flmarket_sim.plugins import registry

Floats = NDArray[np.float64]
LEVELS = (LEVEL, 0.2)
SOLD = (0.4, 1.3, 3.0)  # where owners sold different losses


@dataclass(frozen=True)
class Trial:
    """Perturbations and losses at which a check is tried, and for how many rounds."""

    perturbations: tuple[str, ...]
    losses: tuple[float, ...]
    dimension: int
    rounds: int
    seed: int
    owners: int = 20

    def rng(self, *key: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *key])

    def honest(self, name: str, loss: float | None, rng: np.random.Generator) -> Evidence:
        """A round of honest owners with a past; without a loss they sold different ones."""
        made = registry.perturbations.create(name)
        reference = rng.normal(size=self.dimension)
        same = np.abs(rng.normal(size=(self.owners, self.dimension))) * np.sign(reference)
        size = rng.choice([1e-3, 1e3])  # short gradients, or gradients at the edge of the domain
        gradients = made.prepare((reference + rng.choice([0.0, 1.0]) * same) * size, 1.5)
        losses = np.full(self.owners, loss) if loss else rng.choice(SOLD, self.owners)
        owner = np.arange(self.owners) + 5
        past = made.release(gradients, losses, rng, 1.5)
        sent = made.release(gradients, losses, rng, 1.5)
        records = rng.integers(1, 100, self.owners).astype(np.float64)
        before = PastRound(past, owner, np.zeros(self.owners))
        return Evidence(sent, losses, records, 1.5, made, owner, (before,), reference)

    def cases(self) -> Iterator[tuple[str, Evidence]]:
        """Rounds of every sort, each with what it is."""
        for number, name in enumerate(self.perturbations):
            rng = self.rng(1, number)
            whole = self.honest(name, self.losses[0], rng)
            yield f"{name}, equal losses", whole
            yield f"{name}, different losses", self.honest(name, None, rng)
            yield f"{name}, no past and no reference", replace(whole, history=(), reference=None)
            yield f"{name}, one owner", self.moved(whole, np.arange(1))
            silent = replace(whole, messages=np.zeros_like(whole.messages))
            yield f"{name}, messages of zeros", silent

    def honest_shares(self, check: Any) -> Iterator[tuple[str, dict[float, float], int]]:
        """The share of honest owners accused at each level, by perturbation and loss."""
        for number, name in enumerate(self.perturbations):
            for loss in self.losses:
                rng = self.rng(3, number, int(8 * loss))
                found = [
                    np.asarray(check.p_values(self.honest(name, loss, rng)))
                    for _ in range(self.rounds)
                ]
                p_values = np.concatenate(found)
                shares = {level: float((p_values <= level).mean()) for level in LEVELS}
                yield f"{name} at e = {loss:g}", shares, len(p_values)

    @staticmethod
    def moved(evidence: Evidence, places: NDArray[np.int64]) -> Evidence:
        """The owners of these rows, in this order."""
        return replace(
            evidence,
            messages=evidence.messages[places],
            privacy_loss=evidence.privacy_loss[places],
            data_size=evidence.data_size[places],
            owner=evidence.owner[places],
        )

    @staticmethod
    def arrays(evidence: Evidence) -> list[NDArray[Any]]:
        """All arrays of the evidence."""
        own = [evidence.messages, evidence.privacy_loss, evidence.data_size, evidence.owner]
        if evidence.reference is not None:
            own.append(evidence.reference)
        for past in evidence.history:
            own += [past.messages, past.owner, past.scores]
        return own
