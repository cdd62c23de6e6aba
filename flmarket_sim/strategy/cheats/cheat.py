"""The contract of cheats: `plan(view) -> Plan` and `updates(view, updates)`, optionally more.

A cheat is what an owner does after the sale in place of what she sold. One object serves all its
owners, rounds and buyers, so its memory is indexed by buyer and owner number. It never sends
anything itself: the market trains by the plan, and every message leaves through privacy/release.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.checks.check import Check
from flmarket_sim.checks.consequences import Consequences
from flmarket_sim.errors import ContractError
from flmarket_sim.perturbation.perturbation import Perturbation

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TOLERANCE = 1e-9  # relative: rounding, not rules
PER_OWNER = ("owners", "privacy_loss", "records", "payment")  # columns of a SaleView


class PublicInspection(NamedTuple):
    """What everybody knows of how the broker looks for cheats: her check, what follows, how many
    earlier rounds of messages she keeps, and whether she has a gradient of her own."""

    check: Check
    consequences: Consequences
    history: int
    reference: bool


@dataclass(frozen=True)
class PublicRules:
    """What everybody knows about the market of a buyer.

    dimension     D: the coordinates of a message
    classes       the number of classes of the records; 0 where the market has none
    bidders       the owners who are asked in a round
    asked_share   the chance that an owner is asked in a round
    rounds        for how many rounds the buyer purchases
    inspection    what the broker does to find cheats; None if she does nothing
    """

    perturbation: Perturbation
    clip: float
    dimension: int
    classes: int
    bidders: int
    asked_share: float
    rounds: int
    inspection: PublicInspection | None = None


@dataclass(frozen=True)
class SaleView:
    """What a cheat knows of the sales of its k owners in a round, before they train.

    owners        (k,) their numbers
    privacy_loss  (k,) what each has sold, or is offered to sell
    records       (k,) on how many records
    payment       (k,) for how much
    parameters    (D,) the buyer's public model
    cost          what a loss (k,) on so many records (k,) is truly worth to each of them
    rng           random numbers of this cheat, buyer and round

    A row is a name. A single-minded owner who bids under several names has one cost for all of
    them: `cost` splits it among her names that lose anything, and `payment` splits the sum of what
    they are paid.
    """

    round: int
    buyer: int
    owners: Ints
    privacy_loss: Floats
    records: Floats
    payment: Floats
    parameters: Floats
    cost: Callable[[Floats, Floats], Floats]
    rules: PublicRules
    rng: np.random.Generator

    def at(self, rows: Ints) -> SaleView:
        """The sales of some of the owners."""

        def cost(loss: Floats, records: Floats) -> Floats:
            whole_loss, whole_records = np.zeros(len(self.owners)), np.ones(len(self.owners))
            whole_loss[rows], whole_records[rows] = loss, records
            return np.asarray(self.cost(whole_loss, whole_records)[rows])

        columns = {key: getattr(self, key)[rows] for key in PER_OWNER}
        return replace(self, cost=cost, **columns)


@dataclass(frozen=True)
class Plan:
    """What k owners will truly do; each (k,), or None for what an honest owner does.

    released_at  the privacy loss at which the perturbation releases their messages
    lost         the privacy loss of their records: at most `released_at`, and 0 for a message that
                 does not depend on them, or that has left before
    records      on how many of the sold records they train
    scale        what their messages are multiplied by after the perturbation
    labels       (classes,) the class that they take each class for; None: the true ones
    repeated     (k, D) messages that are sent as they are, in rows without nan
    expected     the money on which they count, for their decision to sell; None: as honest owners
    """

    released_at: Floats | None = None
    lost: Floats | None = None
    records: Floats | None = None
    scale: Floats | None = None
    labels: Ints | None = None
    repeated: Floats | None = None
    expected: Floats | None = None


class Cheat(Protocol):
    """A way to deliver. Options are constructor arguments; the abilities below are optional."""

    name: str

    def plan(self, view: SaleView) -> Plan: ...

    def updates(self, view: SaleView, updates: Floats) -> Floats:
        """(k, D) what is released in place of the updates (k, D) that the plan's training gives."""
        ...


@runtime_checkable
class RemembersMessages(Protocol):
    """A cheat that is told of every message of its owners when it leaves."""

    def sent(self, buyer: int, owner: int, message: Floats) -> None: ...


@runtime_checkable
class ResumableCheat(Protocol):
    """A cheat whose memory can be stored between rounds, as arrays of numbers by name.

    A stopped market with a plug-in cheat that lacks these methods starts again.
    """

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: dict[str, Any]) -> None: ...


@dataclass(frozen=True)
class CheckedPlan:
    """A plan with all its columns; (k,) and (k, D) as in `Plan`."""

    released_at: Floats
    lost: Floats
    records: Floats
    scale: Floats
    labels: Ints | None
    repeated: Floats | None
    expected: Floats | None

    def is_repeated(self) -> NDArray[np.bool_]:
        """(k,) who sends a message that is there already."""
        if self.repeated is None:
            return np.zeros(len(self.lost), np.bool_)
        return np.asarray(~np.isnan(self.repeated).any(axis=1))


def check_plan(name: str, plan: Any, view: SaleView) -> CheckedPlan:
    """The plan as complete arrays; refused if its owners cannot carry it out."""
    k = len(view.owners)

    def refuse(why: str) -> ContractError:
        return ContractError(f"cheat {name!r} in round {view.round}: {why}")

    def column(key: str, default: Floats) -> Floats:
        given = getattr(plan, key)
        return default.copy() if given is None else np.asarray(given, np.float64)

    try:
        released = column("released_at", view.privacy_loss)
        columns = {
            "released_at": released,
            "lost": column("lost", np.minimum(released, view.privacy_loss)),
            "records": column("records", view.records),
            "scale": column("scale", np.ones(k)),
        }
        labels = None if plan.labels is None else np.asarray(plan.labels, np.int64)
        repeated = None if plan.repeated is None else np.asarray(plan.repeated, np.float64)
        expected = None if plan.expected is None else column("expected", view.payment)
    except (AttributeError, TypeError, ValueError) as error:
        raise refuse(f"the plan is not a Plan of numbers ({error})") from None
    for key, values in (columns | ({} if expected is None else {"expected": expected})).items():
        if values.shape != (k,) or not np.isfinite(values).all():
            raise refuse(f"{key} must be {k} finite numbers, got shape {values.shape}")
    lost, records = columns["lost"], columns["records"]
    if (released <= 0).any():
        raise refuse("a message is released at a privacy loss above 0")
    if ((lost < 0) | (lost > released * (1 + TOLERANCE))).any():
        raise refuse("a message costs its owner at least 0 and at most what it is released at")
    if ((records < 1) | (records != np.floor(records)) | (records > view.records)).any():
        raise refuse("records must be whole, at least 1 and at most those that were sold")
    if labels is not None and (
        labels.shape != (view.rules.classes,)
        or (labels < 0).any()
        or (labels >= view.rules.classes).any()
    ):
        raise refuse(f"labels must name one of {view.rules.classes} classes for each of them")
    if repeated is not None and repeated.shape != (k, view.rules.dimension):
        raise refuse(f"repeated messages must have shape {(k, view.rules.dimension)}")
    return CheckedPlan(**columns, labels=labels, repeated=repeated, expected=expected)


def check_updates(name: str, updates: Any, view: SaleView) -> Floats:
    """(k, D) what is released, in new memory. What is not finite leaves as zeros, as always."""
    array = np.array(updates, np.float64)
    expected = (len(view.owners), view.rules.dimension)
    if array.shape != expected:
        raise ContractError(
            f"cheat {name!r} in round {view.round}: updates must have shape {expected}, "
            f"got {array.shape}"
        )
    return array
