"""The contract of behaviours: `report(view) -> BehaviourReports`, and optionally `learn` and
`share`.

One object serves all owners of a behaviour, in all rounds and for all buyers, so its memory is
indexed by owner number. It reports for its k owners who bid in a round, as arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.auctions.auction import Auction
from flmarket_sim.errors import ContractError, InputError
from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.owners.family_table import family_codes
from flmarket_sim.owners.owner_types import OwnerTypes
from flmarket_sim.owners.population import Population
from flmarket_sim.owners.stated_valuation import StatedValuations

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TOLERANCE = 1e-9  # relative: rounding, not rules


@dataclass(frozen=True)
class CohortView:
    """What a behaviour knows before its k owners bid.

    owners      (k,) their numbers
    slots       (k,) their columns among the n owners of the round
    budget      the announced money
    auction     the mechanism, which is public
    rng         random numbers of this behaviour, buyer and round
    asked       (1, n) true types of all owners of the round with privacy left, for informed
                behaviours
    truthful    (1, n, M) their truthful bids
    population  all owners: the prior of less informed behaviours

    Privacy budgets are what the lifetime budgets leave. A step owner with a smaller budget has a
    higher rate here, so that her cost of selling anything stays the same.
    """

    round: int
    buyer: int
    owners: Ints
    slots: Ints
    budget: float
    auction: Auction
    rng: np.random.Generator
    asked: Profiles
    truthful: BidBatch
    population: Population

    @cached_property
    def truth(self) -> Profiles:
        """(1, k) the true types of its own owners."""
        return Profiles(*self.asked.types.at((slice(None), self.slots)))

    @property
    def levels(self) -> int:
        return self.truthful.levels

    @property
    def values(self) -> Floats:
        """(k, M) their true values."""
        return np.asarray(self.truthful.values[0, self.slots])

    @property
    def privacy_budget(self) -> Floats:
        """(k,) the most they can report."""
        return np.asarray(self.truthful.privacy_budget[0, self.slots])

    @property
    def data_size(self) -> Floats:
        """(k,) the most they can report."""
        return np.asarray(self.truthful.data_size[0, self.slots])

    def valued(self, privacy_budget: Floats, data_size: Floats) -> Floats:
        """(k, M) their true values at M equal shares of other budgets (k,), on other data sizes
        (k,)."""
        types = self.truth.types.at(0)
        # The step cost is the product rate * (records * budget): logs have its very last bit.
        whole = types._replace(
            data_size=types.data_size * types.privacy_budget,
            privacy_budget=np.ones_like(types.privacy_budget),
        )
        return whole.table(self.levels, privacy_budget, data_size)


@dataclass(frozen=True)
class BehaviourReports:
    """What the k owners of a view report, in r rows.

    values, privacy_budget, data_size   (r, M), (r,), (r,) as in a BidBatch
    of            (r,) the owner of each row: a position in the view. None means one row for each
                  owner, in order. Several rows of an owner are names of hers that offer different
                  records; every owner has at least one row
    family, rate  (r,) the type that a report pretends, if any: for the log, and for auctions that
                  read a report between its levels
    stated        (r,) the valuations that the reports state, where `family` does not say it
    """

    values: Floats
    privacy_budget: Floats
    data_size: Floats
    of: Ints | None = None
    family: ArrayLike | None = None
    rate: Floats | None = None
    stated: StatedValuations | None = None

    def statements(self) -> StatedValuations:
        """What the reports state; `TABLE` where they state no more than their tables."""
        if self.stated is not None:
            return self.stated
        if self.family is None or self.rate is None:
            return StatedValuations.tables(self.privacy_budget.shape)
        codes = family_codes(self.family)
        types = OwnerTypes(codes, self.rate, self.privacy_budget, self.data_size)
        return StatedValuations.of(types)


@dataclass(frozen=True)
class Feedback:
    """What became of the bids of a view, each (k,): what owners know once the gradients are in.

    privacy_loss  what she sold; the largest over her names, whose records differ; 0 without a
                  gradient
    payment       what she gets for it
    utility       payment minus its true value to her
    """

    view: CohortView
    privacy_loss: Floats
    payment: Floats
    utility: Floats


class Transfers(NamedTuple):
    """Money between owners, outside the market: payer (t,) gives payee (t,) an amount (t,)."""

    payer: Ints
    payee: Ints
    amount: Floats


class Behaviour(Protocol):
    """A way to bid. Options are constructor arguments; the abilities below are optional."""

    name: str

    def report(self, view: CohortView) -> BehaviourReports: ...


@runtime_checkable
class LearningBehaviour(Behaviour, Protocol):
    """A behaviour that learns the outcome of its reports after every round."""

    def learn(self, feedback: Feedback) -> None: ...


@runtime_checkable
class SharingBehaviour(Behaviour, Protocol):
    """A behaviour whose owners give each other money after every round."""

    def share(self, feedback: Feedback) -> Transfers | None: ...


@runtime_checkable
class ResumableBehaviour(Behaviour, Protocol):
    """A behaviour whose memory can be stored between rounds.

    A stopped market with a plug-in behaviour that lacks these methods starts again.
    """

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: dict[str, Any]) -> None: ...


def check_reports(name: str, reports: Any, view: CohortView) -> BehaviourReports:
    """The report as complete arrays; refused if its owners cannot make it (shapes, budgets,
    records)."""
    k, levels = len(view.owners), view.levels

    def refuse(why: str) -> ContractError:
        return ContractError(f"behaviour {name!r} in round {view.round}: {why}")

    try:
        values, budget, size = (
            np.asarray(a, np.float64)
            for a in (reports.values, reports.privacy_budget, reports.data_size)
        )
        of = np.arange(k) if reports.of is None else np.asarray(reports.of, np.int64)
        family = None if reports.family is None else family_codes(reports.family)
        rate = None if reports.rate is None else np.asarray(reports.rate, np.float64)
        stated = getattr(reports, "stated", None)  # a plug-in's own class may lack it
    except (AttributeError, TypeError, ValueError, InputError) as error:
        raise refuse(f"the report is not a BehaviourReports of numbers ({error})") from None
    rows = len(of)
    expected: dict[str, tuple[NDArray[Any], tuple[int, ...]]] = {
        "values": (values, (rows, levels)),
        "privacy_budget": (budget, (rows,)),
        "data_size": (size, (rows,)),
    }
    expected |= {
        key: (array, (rows,))
        for key, array in (
            ("family", family),
            ("rate", rate),
            ("stated", None if stated is None else stated.scale),
        )
        if array is not None
    }
    for what, (array, shape) in expected.items():
        if array.shape != shape:
            raise refuse(f"{what} must have shape {shape}, got {array.shape}")
        if not np.isfinite(array).all():
            raise refuse(f"{what} must be finite")
    if of.shape != (rows,) or not np.array_equal(np.unique(of), np.arange(k)):
        raise refuse(f"every one of its {k} owners must report, and nobody else")
    if (np.diff(values, axis=1, prepend=0.0) < 0).any():
        raise refuse("values must be at least 0 and must not fall over the levels")
    if ((budget <= 0) | (budget > view.privacy_budget[of] * (1 + TOLERANCE))).any():
        raise refuse("a reported privacy budget must be above 0 and at most the true one")
    if ((size < 1) | (size != np.floor(size))).any() or (
        np.bincount(of, size, k) > view.data_size
    ).any():
        raise refuse(
            "reported data sizes must be whole, at least 1 and together at most the true one"
        )
    return BehaviourReports(
        values, np.minimum(budget, view.privacy_budget[of]), size, of, family, rate, stated
    )


def check_transfers(name: str, transfers: Any, view: CohortView) -> Transfers:
    """Refuses transfers from or to other owners, and amounts that are negative or not finite."""
    payer, payee = np.asarray(transfers.payer, np.int64), np.asarray(transfers.payee, np.int64)
    amount = np.asarray(transfers.amount, np.float64)
    if not payer.shape == payee.shape == amount.shape or amount.ndim != 1:
        raise ContractError(
            f"behaviour {name!r}: transfers need a payer, a payee and an amount each"
        )
    if (
        not np.isin([payer, payee], view.owners).all()
        or not (np.isfinite(amount) & (amount >= 0)).all()
    ):
        raise ContractError(
            f"behaviour {name!r}: transfers must be between its own owners, finite and at least 0"
        )
    return Transfers(payer, payee, amount)
