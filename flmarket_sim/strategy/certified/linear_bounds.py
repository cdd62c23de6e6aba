"""Quantities that are known up to a linear function of a box: the arithmetic of certificates.

A box of D coordinates is written as z in [-1, 1]^D. A quantity x that depends on z is enclosed as

    x  in  center + slope . z  +-  radius        for every z of the box.

With slope 0 this is interval arithmetic. The slopes keep what quantities have in common, so they
cancel in differences; what is not linear goes into the radius, which falls with the square of the
width of the box. Every operation below keeps the enclosure. Rounding in double precision is left to
the caller, who adds a slack that is far larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

CELLS = 4  # of the grid on which a function is compared with its secant
Function = Callable[[Tensor], Tensor]
Curvature = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Enclosed:
    """Quantities of shape S in B boxes: center and radius (B, *S), slope (B, D, *S)."""

    center: Tensor
    slope: Tensor
    radius: Tensor

    @classmethod
    def of_boxes(cls, low: Tensor, high: Tensor) -> Enclosed:
        """The D coordinates of boxes (B, D) themselves."""
        half = (high - low) / 2
        return cls((low + high) / 2, torch.diag_embed(half), torch.zeros_like(half))

    def constant(self, value: Tensor) -> Enclosed:
        """A tensor (*S) that is the same everywhere in these boxes."""
        boxes, dimensions = self.slope.shape[:2]
        center = value.expand(boxes, *value.shape).clone()
        slope = torch.zeros(boxes, dimensions, *value.shape, dtype=center.dtype)
        return Enclosed(center, slope, torch.zeros_like(center))

    def deviation(self) -> Tensor:
        """(B, *S) how far a quantity can be from its center."""
        return self.slope.abs().sum(1) + self.radius

    def bounds(self) -> tuple[Tensor, Tensor]:
        far = self.deviation()
        return self.center - far, self.center + far

    def at(self, *index: Any) -> Enclosed:
        """Some of the quantities: an index of the axes S."""
        every = slice(None)
        return Enclosed(
            self.center[(every, *index)],
            self.slope[(every, every, *index)],
            self.radius[(every, *index)],
        )

    def __add__(self, other: Enclosed | Tensor | float) -> Enclosed:
        if isinstance(other, Enclosed):
            one, two = _with_same_symbols([self, other])
            return Enclosed(one.center + two.center, one.slope + two.slope, one.radius + two.radius)
        return Enclosed(self.center + other, self.slope, self.radius)

    def __sub__(self, other: Enclosed) -> Enclosed:
        return self + other.times(-1.0)

    def times(self, factor: Tensor | float) -> Enclosed:
        """Multiplied by constants that broadcast with the axes S."""
        size = factor.abs() if isinstance(factor, Tensor) else abs(factor)
        return Enclosed(self.center * factor, self.slope * factor, self.radius * size)

    def product(self, other: Enclosed) -> Enclosed:
        """Multiplied by other quantities of the same shape, both of which are at least 0."""
        one, two = _with_same_symbols([self, other])
        far_one, far_two = one.deviation(), two.deviation()
        found = Enclosed(
            one.center * two.center,
            one.slope * two.center[:, None] + two.slope * one.center[:, None],
            one.radius * two.center.abs() + two.radius * one.center.abs() + far_one * far_two,
        )
        ends = zip(one.bounds(), two.bounds(), strict=True)
        least, most = (a.clamp(min=0.0) * b.clamp(min=0.0) for a, b in ends)
        return found.between(least, most)

    def expand(self, count: int) -> Enclosed:
        """Repeated along a new last axis."""
        return Enclosed(
            *(part[..., None].expand(*part.shape, count) for part in vars(self).values())
        )

    def sum(self) -> Enclosed:
        """Over the last axis."""
        return Enclosed(self.center.sum(-1), self.slope.sum(-1), self.radius.sum(-1))

    def with_symbols(self) -> Enclosed:
        """Every radius of quantities (B, F) becomes a slope along a new symbol of its own, so that
        later layers can cancel it. A symbol is one more coordinate between -1 and 1; it stands
        behind the D of the box."""
        symbols = torch.diag_embed(self.radius)
        nothing = torch.zeros_like(self.radius)
        return Enclosed(self.center, torch.cat([self.slope, symbols], 1), nothing)

    def without_symbols(self, kept: int) -> Enclosed:
        """Slopes behind the first `kept` become radius again. Two networks on the same input both
        number their symbols from there, so each must drop its own before they meet."""
        extra = self.slope[:, kept:].abs().sum(1)
        return Enclosed(self.center, self.slope[:, :kept], self.radius + extra)

    def widened(self, by: Tensor | float) -> Enclosed:
        return Enclosed(self.center, self.slope, self.radius + by)

    def between(self, low: Tensor | float, high: Tensor | float) -> Enclosed:
        """The same quantities, which are known to lie between `low` and `high` as well."""
        least, most = self.bounds()
        least = torch.fmax(least, torch.as_tensor(low, dtype=least.dtype))
        most = torch.fmin(most, torch.as_tensor(high, dtype=most.dtype))
        half = (most - least).clamp(min=0.0) / 2
        plain = (half <= self.radius) | ~torch.isfinite(self.deviation())
        return Enclosed(
            torch.where(plain, (most + least) / 2, self.center),
            torch.where(plain[:, None], torch.zeros_like(self.slope), self.slope),
            torch.where(plain, half, self.radius),
        )

    def linear(self, weight: Tensor, bias: Tensor) -> Enclosed:
        """weight x + bias along the last axis."""
        return Enclosed(
            self.center @ weight.T + bias, self.slope @ weight.T, self.radius @ weight.abs().T
        )

    def smooth(
        self,
        function: Function,
        curvature: Curvature,
        monotone: bool = True,
        domain: tuple[float, float] = (-math.inf, math.inf),
    ) -> Enclosed:
        """function(x), elementwise; `curvature(low, high)` is at least |second derivative| there.
        `domain` is where x is known to lie, whatever its enclosure says.

        The secant over [low, high] is the linear part. The rest is compared with it on a grid;
        between two neighbours at a distance w it is within curvature w^2 / 8 of its chord.
        """
        low, high = (bound.clamp(*domain) for bound in self.bounds())
        share = torch.arange(CELLS + 1, dtype=low.dtype) / CELLS
        points = low[..., None] + (high - low)[..., None] * share
        values = function(points)
        width = high - low
        rise = values[..., -1] - values[..., 0]
        secant = torch.where(width > 1e-12, rise / width.clamp(min=1e-12), torch.zeros_like(rise))
        rest = values - secant[..., None] * points
        beyond = curvature(low, high) * (width / CELLS) ** 2 / 8
        found = self._along(secant, rest.amin(-1) - beyond, rest.amax(-1) + beyond)
        if not monotone:
            return found.between(values.amin(-1) - beyond, values.amax(-1) + beyond)
        ends = values[..., 0], values[..., -1]
        return found.between(torch.minimum(*ends), torch.maximum(*ends))

    def clamp(self, least: float, most: float) -> Enclosed:
        """Cut at both ends."""
        low, high = self.bounds()
        width = high - low
        kinks = [low, high, low.clamp(least, most), high.clamp(least, most)]
        points = torch.stack(
            [*kinks, *(low.clamp(min=kink).minimum(high) for kink in (least, most))]
        )
        rise = high.clamp(least, most) - low.clamp(least, most)
        secant = torch.where(width > 1e-12, rise / width.clamp(min=1e-12), torch.zeros_like(rise))
        rest = points.minimum(high).maximum(low)
        rest = rest.clamp(least, most) - secant * rest
        return self._along(secant, rest.amin(0), rest.amax(0)).between(least, most)

    def _along(self, secant: Tensor, least: Tensor, most: Tensor) -> Enclosed:
        """secant x + a rest between `least` and `most`."""
        return Enclosed(
            secant * self.center + (least + most) / 2,
            secant[:, None] * self.slope,
            secant.abs() * self.radius + (most - least) / 2,
        )

    def log_sum_exp(self) -> Enclosed:
        """log sum exp x over the last axis.

        It is convex, so it lies above its tangent plane, and at most spread^2 / 8 above: its second
        derivative along a line is a variance of numbers that differ by at most the spread.
        """
        share = torch.softmax(self.center, -1)
        mean = Enclosed(
            (self.center * share).sum(-1),
            (self.slope * share[:, None]).sum(-1),
            (self.radius * share).sum(-1),
        )
        apart = (self - mean.expand(share.shape[-1])).deviation().amax(-1)
        rest = (2 * apart) ** 2 / 8
        start = torch.logsumexp(self.center, -1)
        found = Enclosed(start + rest / 2, mean.slope, mean.radius + rest / 2)
        low, high = self.bounds()
        return found.between(torch.logsumexp(low, -1), torch.logsumexp(high, -1))

    def largest(self, axis: int) -> Enclosed:
        """The maximum over one of the axes S: the leader at the center, and by how much another
        one can be above it."""
        leader = self.center.argmax(axis + 1, keepdim=True)
        wide = leader[:, None].expand(-1, self.slope.shape[1], *(-1,) * (leader.dim() - 1))
        first = Enclosed(
            self.center.gather(axis + 1, leader),
            self.slope.gather(axis + 2, wide),
            self.radius.gather(axis + 1, leader),
        )
        shape = self.center.shape[axis + 1]
        apart = (self.slope - first.slope).abs().sum(1) + self.radius + first.radius
        above = self.center - first.center + apart
        others = torch.ones_like(above).scatter_(axis + 1, leader, 0.0)
        excess = (above * others).amax(axis + 1).clamp(min=0.0) if shape > 1 else 0.0
        low, high = (bound.amax(axis + 1) for bound in self.bounds())
        alone = Enclosed(
            first.center.squeeze(axis + 1), first.slope.squeeze(axis + 2),
            first.radius.squeeze(axis + 1),
        )  # fmt: skip
        return (alone + excess / 2).widened(excess / 2).between(low, high)


def joined(parts: list[Enclosed], axis: int = -1) -> Enclosed:
    """Quantities side by side along one of the axes S, counted from the end."""
    columns = zip(*(vars(part).values() for part in _with_same_symbols(parts)), strict=True)
    return Enclosed(*(torch.cat(column, axis) for column in columns))


def stacked(parts: list[Enclosed]) -> Enclosed:
    """Quantities side by side along a new last axis."""
    columns = zip(*(vars(part).values() for part in _with_same_symbols(parts)), strict=True)
    return Enclosed(*(torch.stack(column, -1) for column in columns))


def _with_same_symbols(parts: list[Enclosed]) -> list[Enclosed]:
    """Slopes of 0 along the symbols that came later than some of the parts."""
    most = max(part.slope.shape[1] for part in parts)
    padded = []
    for part in parts:
        missing = most - part.slope.shape[1]
        zeros = part.slope.new_zeros(len(part.slope), missing, *part.slope.shape[2:])
        slope = torch.cat([part.slope, zeros], 1) if missing else part.slope
        padded.append(Enclosed(part.center, slope, part.radius))
    return padded
