"""Checks for authors of valuation families: does a family keep the contract of
owners/valuation_family.py?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import shortened
from flmarket_sim.owners.valuation_family import DependsOnSize, InTorch, StatesSlope, slope
from flmarket_sim.plugins import registry
from flmarket_sim.plugins.plugin_kind import require_contract

Floats = NDArray[np.float64]
EXACT = 1e-9  # relative: rounding
ROUGH = 1e-4  # relative: slopes by differences, tensors in single precision
POINTS = 400


class NotAValuation(AssertionError):
    """A family breaks its contract; the message has everything that is wrong."""


def check_valuation(family: Any, largest_loss: float = 5.0) -> None:
    """Tries a family on privacy losses from 0 to `largest_loss`.

    The family is an instance, a class, a name or "module:Class". Raises NotAValuation with all
    complaints: selling nothing costs nothing, values are finite and do not fall, `loss_for_money`
    inverts `value`, methods are elementwise, and optional methods agree with `value`.
    """
    made: Any = registry.families.create(family) if isinstance(family, str) else family
    made = made() if isinstance(made, type) else made
    require_contract(
        type(made), type(made).__name__, registry.families.kind, registry.families.needs
    )
    losses = np.concatenate([[0.0], np.geomspace(1e-6 * largest_loss, largest_loss, POINTS)])
    complaints = []
    for check in (_values, _inverse, _elementwise, _slope, _sizes, _tensors):
        try:
            with np.errstate(all="ignore"):
                complaints += list(check(made, losses))
        except Exception as error:  # foreign code may fail in any way
            complaints.append(f"it failed: {type(error).__name__}: {shortened(str(error))}")
    if complaints:
        listed = "\n".join(f"- {complaint}" for complaint in dict.fromkeys(complaints))
        raise NotAValuation(f"the valuation family {made.name!r} breaks its contract:\n{listed}")


def _values(family: Any, losses: Floats) -> Iterator[str]:
    value = np.asarray(family.value(losses))
    if value[0] != 0:
        yield f"selling nothing must cost nothing, but value(0) is {value[0]:g}"
    if not np.isfinite(value).all() or (value < 0).any():
        wrong = ~np.isfinite(value) | (value < 0)
        at, got = losses[wrong][0], value[wrong][0]
        yield f"values must be finite and at least 0, but value({at:g}) is {got:g}"
    fall = np.flatnonzero(np.diff(value) < 0)
    if len(fall):
        i = int(fall[0])
        yield (
            f"more privacy must not cost less, but value({losses[i]:g}) is {value[i]:g} and "
            f"value({losses[i + 1]:g}) is {value[i + 1]:g}"
        )


def _inverse(family: Any, losses: Floats) -> Iterator[str]:
    value = np.asarray(family.value(losses))
    back = np.asarray(family.loss_for_money(value))
    short = np.flatnonzero(~(back >= losses * (1 - ROUGH)))
    if len(short):
        i = int(short[0])
        yield (
            f"value({losses[i]:g}) is {value[i]:g}, so this money must buy {losses[i]:g}, but "
            f"loss_for_money({value[i]:g}) is {back[i]:g}"
        )
    money = np.concatenate([value, 0.5 * (value[1:] + value[:-1])])
    worth = np.asarray(family.value(np.minimum(family.loss_for_money(money), losses[-1])))
    dear = np.flatnonzero(~(worth <= money * (1 + EXACT)))
    if len(dear):
        i = int(dear[0])
        yield (
            f"loss_for_money must give a loss that is worth at most the money, but the loss for "
            f"{money[i]:g} is worth {worth[i]:g}"
        )


def _elementwise(family: Any, losses: Floats) -> Iterator[str]:
    grid = losses[1:].reshape(4, -1)
    for name in ("value", "loss_for_money", "marginal_value", "size_factor"):
        method: Callable[[Any], Any] | None = getattr(family, name, None)
        if method is None:
            continue
        whole = np.asarray(method(grid))
        if whole.shape != grid.shape or whole.dtype != np.float64:
            yield (
                f"{name} must give float64 in the shape of its argument, {grid.shape}, got "
                f"{whole.dtype} {whole.shape}"
            )
        elif not all(
            np.allclose(whole[i, j], method(grid[i : i + 1, j : j + 1]), EXACT, 0.0)
            for i, j in ((0, 0), (1, 7), (3, -2))
        ):
            yield f"{name} must be elementwise, but a number's result depends on the others"


def _slope(family: Any, losses: Floats) -> Iterator[str]:
    if isinstance(family, StatesSlope):
        inner = losses[1:-1]
        stated = np.asarray(family.marginal_value(inner))
        found = slope(_OnlyValue(family), inner)
        apart = np.abs(stated - found) > ROUGH * (np.abs(found) + np.abs(stated)) + 1e-6
        if apart.any():
            at, said, true = (a[apart][0] for a in (inner, stated, found))
            yield f"marginal_value({at:g}) is {said:g}, but the slope of value there is {true:g}"


def _sizes(family: Any, losses: Floats) -> Iterator[str]:
    if isinstance(family, DependsOnSize):
        factor = np.asarray(family.size_factor(np.geomspace(1.0, 1e6, POINTS)))
        if not (np.isfinite(factor) & (factor > 0)).all() or (np.diff(factor) < 0).any():
            yield "size_factor must be finite, positive and nowhere falling"


def _tensors(family: Any, losses: Floats) -> Iterator[str]:
    if isinstance(family, InTorch):
        import torch

        value = _values_of(family, losses)
        tensor = torch.from_numpy(losses).requires_grad_(True)
        result = family.torch_value(tensor)
        near = ROUGH * value[np.isfinite(value)].max()
        if not np.allclose(result.detach().numpy(), value, ROUGH, near):
            yield "torch_value is not what value gives"
        torch.autograd.backward(result.sum())
        if tensor.grad is None or not bool(torch.isfinite(tensor.grad).all()):
            yield "the gradient of torch_value must be finite, also at a loss of 0"


def _values_of(family: Any, losses: Floats) -> Floats:
    return np.asarray(family.value(losses))


class _OnlyValue:
    """A family without its optional methods."""

    name = "value only"

    def __init__(self, family: Any) -> None:
        self.value, self.loss_for_money = family.value, family.loss_for_money
