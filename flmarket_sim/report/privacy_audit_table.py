"""What an audit of a perturbation shows, as a table and as rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from flmarket_sim.errors import InputError, shown
from flmarket_sim.privacy.privacy_audit import AuditResult, PrivacyClaim


def options(words: Sequence[str]) -> dict[str, Any]:
    """Options of a perturbation from KEY=VALUE; values are JSON, or else text."""
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise InputError(f"--option takes KEY=VALUE, for instance size=16 (got {shown(word)})")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found


def row(result: AuditResult) -> dict[str, Any]:
    """A result for machines."""
    return asdict(result) | {"shown": result.shown, "passed": result.passed}


def render(
    name: str, given: dict[str, Any], claim: PrivacyClaim, results: Sequence[AuditResult]
) -> RenderableType:
    """The table, at most 80 columns wide, and what it means."""
    gaussian = any(result.gaussian_bound is not None for result in results)
    table = Table(box=None, pad_edge=False)
    heads = ["claimed e", "shown: at least", "within reach", "one by one"]
    for head in [*heads, *(["if Gaussian"] if gaussian else []), "verdict"]:
        table.add_column(head, justify="right")
    for result in results:
        cells = [
            f"{result.claimed:g}",
            f"{result.lower_bound:.4f}",
            f"{result.reach:.4f}",
            f"{result.market_bound:.4f}" if result.market_draws else "-",
        ]
        if gaussian:
            cells.append("-" if result.gaussian_bound is None else f"{result.gaussian_bound:.4f}")
        table.add_row(*cells, "not refuted" if result.passed else "REFUTED")
    return Group(table, Text(_note(name, given, claim, results[0])))


def _note(name: str, given: dict[str, Any], claim: PrivacyClaim, result: AuditResult) -> str:
    settings = "".join(f", {key} = {value}" for key, value in given.items())
    note = (
        f"{name}{settings}: {claim.noise} noise, {claim.dimension} coordinates, clip = "
        f"{claim.clip:g}. Each of two gradients was released {result.draws:,} times"
    )
    if result.market_draws and result.market_draws != result.draws:
        note += f", and {result.market_draws:,} times one by one as in a market"
    note += f". Each bound holds with confidence {result.confidence:g}. "
    if result.delta:
        note += f"The promise is (e, delta) with delta = {result.delta:g}, weaker than e alone. "
    if result.gaussian_bound is not None:
        note += "The column 'if Gaussian' holds for a gradient plus Gaussian noise only. "
    return note + "A claim that is not refuted is not proven."
