"""What an audit of a perturbation shows, as a table and as rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from flmarket_sim.errors import InputError, shown
from flmarket_sim.privacy.privacy_audit import AuditResult, PrivacyClaim


def options(words: Sequence[str]) -> dict[str, Any]:
    """Options of a perturbation from KEY=VALUE; values are JSON, or else text."""
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise InputError(f"`option` takes KEY=VALUE, for instance size=16 (got {shown(word)})")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found


def row(result: AuditResult) -> dict[str, Any]:
    """A result for machines."""
    return asdict(result) | {"shown": result.shown, "passed": result.passed}


def shown_rows(results: Sequence[AuditResult]) -> list[dict[str, Any]]:
    """A row for each claim, for people."""
    gaussian = any(result.gaussian_bound is not None for result in results)
    return [
        {
            "claimed e": f"{result.claimed:g}",
            "verdict": "not refuted" if result.passed else "REFUTED",
            "shown: at least": f"{result.lower_bound:.4f}",
            "within reach": f"{result.reach:.4f}",
            "one by one": f"{result.market_bound:.4f}" if result.market_draws else "",
        }
        | ({"if Gaussian": _places(result.gaussian_bound)} if gaussian else {})
        for result in results
    ]


def _places(bound: float | None) -> str:
    return "" if bound is None else f"{bound:.4f}"


def meaning(name: str, given: dict[str, Any], claim: PrivacyClaim, result: AuditResult) -> str:
    """What was released how often, and what a bound says."""
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
