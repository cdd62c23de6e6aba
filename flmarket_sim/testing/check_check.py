"""Checks for authors of checks: does one keep the contract of checks/check.py?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from flmarket_sim.errors import InputError, did_you_mean, shortened
from flmarket_sim.plugins import registry
from flmarket_sim.plugins.plugin_kind import require_contract
from flmarket_sim.testing.check_trial import Trial

Property = Callable[[Any, Trial], Iterator[str]]


class NotACheck(AssertionError):
    """A check breaks its contract; the message has everything that is wrong."""


def form(check: Any, trial: Trial) -> Iterator[str]:
    """Scores and p-values are numbers in the shape of the sellers."""
    for label, evidence in trial.cases():
        count = len(evidence.messages)
        for what in ("scores", "p_values"):
            found = np.asarray(getattr(check, what)(evidence))
            if found.shape != (count,) or found.dtype != np.float64:
                yield (
                    f"{what} must give float64 in the shape ({count},), not {found.dtype} in "
                    f"{found.shape} ({label})"
                )
        p_values = np.asarray(check.p_values(evidence), np.float64)
        if not ((p_values >= 0) & (p_values <= 1)).all():
            yield f"p_values must lie in [0, 1] ({label})"
        scores = np.asarray(check.scores(evidence), np.float64)
        if scores.shape == p_values.shape and (p_values[np.isnan(scores)] < 1).any():
            yield f"who cannot be judged (score NaN) must have the p-value 1 ({label})"


def evidence_alone(check: Any, trial: Trial) -> Iterator[str]:
    """The evidence is left as it was, and asked twice the check says the same."""
    for label, evidence in trial.cases():
        before = [array.copy() for array in trial.arrays(evidence)]
        first = check.p_values(evidence)
        if not np.array_equal(first, check.p_values(evidence)):
            yield f"asked twice, it must give the same p-values ({label})"
        check.scores(evidence)
        after = trial.arrays(evidence)
        if any(not np.array_equal(a, b) for a, b in zip(before, after, strict=True)):
            yield f"it must leave its evidence alone ({label})"


def order(check: Any, trial: Trial) -> Iterator[str]:
    """Owners have no order: rows that change places take their p-values with them."""
    for label, evidence in trial.cases():
        places = trial.rng(2).permutation(len(evidence.messages))
        moved = check.p_values(trial.moved(evidence, places))
        if not np.allclose(moved, np.asarray(check.p_values(evidence))[places], atol=1e-6):
            yield f"owners who change places must take their p-values with them ({label})"


def level(check: Any, trial: Trial) -> Iterator[str]:
    """Honest owners are accused at the level or less."""
    for label, shares, messages in trial.honest_shares(check):
        for alpha, share in shares.items():
            allowed = alpha + 4.0 * np.sqrt(alpha * (1.0 - alpha) * trial.owners / messages)
            if share > allowed:
                yield (
                    f"at the level {alpha:g} it accuses {100 * share:.1f} % of honest owners "
                    f"({label})"
                )


PROPERTIES: dict[str, Property] = {
    "form": form,
    "evidence": evidence_alone,
    "order": order,
    "level": level,
}


def check_check(
    check: Any,
    perturbations: Sequence[str] = ("laplace", "priv-unit", "piecewise"),
    losses: Sequence[float] = (0.5, 8.0),
    dimension: int = 6,
    rounds: int = 40,
    seed: int = 0,
    only: Sequence[str] = tuple(PROPERTIES),
    **options: Any,
) -> None:
    """Tries a check on rounds of honest owners and of owners who are not.

    The check is an instance, a class, a name or "module:Class"; `options` are those of its
    constructor. Raises NotACheck with all complaints. The properties, of which `only` names some:

    form       scores and p-values are float64 of shape (n,), p-values lie in [0, 1], and who cannot
               be judged has 1; also with one owner, without a past and without a reference
    evidence   it changes nothing of its evidence, and says the same when it is asked twice
    order      owners who change places take their p-values with them
    level      at levels of 5 % and 20 % it accuses no larger share of honest owners, whose
               gradients do not point away from the reference or from each other

    The last is statistical, with `rounds` rounds of 20 owners in each case. Its threshold leaves
    four standard errors, as if the owners of a round were all accused together. What is not refused
    is not proven: gradients that break the check's own assumption are its author's to think of.
    """
    made: Any = registry.checks.create(check, **options) if isinstance(check, str) else check
    made = made(**options) if isinstance(made, type) else made
    kind = registry.checks
    require_contract(type(made), type(made).__name__, kind.kind, kind.needs)
    for name in only:
        if name not in PROPERTIES:
            raise InputError(
                f"there is no property {name!r}{did_you_mean(name, PROPERTIES, '.')} Properties: "
                f"{', '.join(PROPERTIES)}"
            )
    trial = Trial(tuple(perturbations), tuple(losses), dimension, rounds, seed)
    complaints: list[str] = []
    for name in only:
        try:
            with np.errstate(all="ignore"):
                complaints += list(PROPERTIES[name](made, trial))
        except Exception as error:  # foreign code may fail in any way
            complaints.append(
                f"it failed ({name}): {type(error).__name__}: {shortened(str(error))}"
            )
    if complaints:
        listed = "\n".join(f"- {complaint}" for complaint in dict.fromkeys(complaints))
        raise NotACheck(f"the check {made.name!r} breaks its contract:\n{listed}")
