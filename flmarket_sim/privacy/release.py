"""How gradients leave their owners: prepared together, perturbed one by one.

This is the only way out of the market, and the audit of perturbations uses it too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import ContractError, plugin_errors
from flmarket_sim.perturbation.domains import are_finite, norms
from flmarket_sim.perturbation.perturbation import Perturbation
from flmarket_sim.privacy.noise import Noise

Floats = NDArray[np.float64]
ELEMENTS = 2**20  # numbers that are prepared at once


class AfterRelease(NamedTuple):
    """What owners who cheat do to their messages after the perturbation, by row.

    scale     what a message is multiplied by
    repeated  a message (D,) that its owner has sent before, and sends again in place of a new one
    """

    scale: dict[int, float]
    repeated: dict[int, Floats]


class Release:
    """The gradients (n, D) of n owners in the domain of a perturbation.

    `norms` (n,) are the norms before, in the norm of that domain. `finite` (n,) says which
    gradients were vectors of finite numbers. In place of any other, zeros are prepared and
    released: it is one message for all of them, so their owners are as private as the rest. `raw`
    is overwritten, so the caller must not use it afterwards. `after` is for owners who cheat.
    """

    def __init__(
        self,
        raw: Floats,
        privacy_loss: list[float],
        perturbation: Perturbation,
        clip: float,
        noise: Noise,
        after: AfterRelease | None = None,
    ) -> None:
        self.after = AfterRelease({}, {}) if after is None else after
        self.finite = are_finite(raw)
        self.norms = norms(raw, perturbation.domain)
        raw[~self.finite] = 0.0
        self.prepared = _prepare(raw, perturbation, clip)
        self.privacy_loss, self.perturbation, self.noise = privacy_loss, perturbation, noise

    def leave(self, row: int, owner: int, round_number: int, buyer: int) -> Floats:
        """(D,) a row as its owner sends it: the only form in which others see it."""
        if row in self.after.repeated:
            return self.after.repeated[row].copy()
        loss = self.privacy_loss[row]
        with plugin_errors("perturbation", self.perturbation.name):
            sent = self.noise.release(self.prepared[row], loss, owner, round_number, buyer)
        message = _checked(sent, self.prepared[row].shape, self.perturbation.name, "releases")
        return message * self.after.scale[row] if row in self.after.scale else message

    def mean(self, row: int) -> Floats:
        """(D,) the mean of what a row sends, over the randomness of the perturbation."""
        if row in self.after.repeated:
            return self.after.repeated[row]
        return np.asarray(self.prepared[row] * self.after.scale.get(row, 1.0))


def _prepare(raw: Floats, perturbation: Perturbation, clip: float) -> Floats:
    """The prepared gradients in the memory of the raw ones, some rows at a time."""
    step = max(1, ELEMENTS // max(raw.shape[1], 1))
    for begin in range(0, len(raw), step):
        rows = raw[begin : begin + step]
        with plugin_errors("perturbation", perturbation.name):
            prepared = perturbation.prepare(rows, clip)
        rows[:] = _checked(prepared, rows.shape, perturbation.name, "prepares")
    return raw


def _checked(values: Any, shape: tuple[int, ...], name: str, does: str) -> Floats:
    array = np.asarray(values, np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise ContractError(
            f"perturbation {name!r} {does} gradients that are not finite numbers of shape {shape}"
        )
    return array
