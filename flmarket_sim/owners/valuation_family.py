"""The contract of valuation families: what one record is worth to its owner, by privacy loss.

An owner of a family values a privacy loss e on d records at

    v(e, d) = rate x size_factor(d) x value(e),

where `size_factor` is d itself unless the family says otherwise. The rate is hers, the rest is her
family's. `step`, the single-minded owner of the paper, is the one exception: her cost follows from
her true records and privacy budget, whatever she sells (valuation.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float64]
STEP_SHARE = 1e-5  # of a privacy loss: half the width of a numerical slope


class ValuationFamily(Protocol):
    """A form of valuations. It is made without options, and its methods are elementwise.

    `value` is the money that makes up for a privacy loss on one record at a rate of 1: 0 at 0,
    finite, and nowhere falling. `loss_for_money` inverts it: the largest privacy loss that is worth
    at most so much, infinite where no loss is worth more. Arrays have any shape; losses and money
    are at least 0.

    Three more methods are optional: those of `StatesSlope`, `DependsOnSize` and `InTorch`.
    """

    name: str

    def value(self, privacy_loss: Floats) -> Floats: ...

    def loss_for_money(self, money: Floats) -> Floats: ...


@runtime_checkable
class StatesSlope(Protocol):
    """A family with the derivative of `value`; for others it is computed by differences."""

    def marginal_value(self, privacy_loss: Floats) -> Floats: ...


@runtime_checkable
class DependsOnSize(Protocol):
    """A family whose value is not proportional to the records: `size_factor` (positive, nowhere
    falling) replaces their number."""

    def size_factor(self, data_size: Floats) -> Floats: ...


@runtime_checkable
class InTorch(Protocol):
    """A family that learned auctions can be trained with: `value` on tensors, differentiable."""

    def torch_value(self, privacy_loss: Tensor) -> Tensor: ...


def slope(family: ValuationFamily, privacy_loss: Floats) -> Floats:
    """The derivative of `value`: as the family states it, or by differences."""
    if isinstance(family, StatesSlope):
        return family.marginal_value(privacy_loss)
    width = STEP_SHARE * np.maximum(privacy_loss, STEP_SHARE)
    low = np.maximum(privacy_loss - width, 0.0)
    high = privacy_loss + width
    return np.asarray((family.value(high) - family.value(low)) / (high - low))
