"""The rational cheat: in every sale, whatever pays best against the market's check."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from flmarket_sim.errors import InputError
from flmarket_sim.plugins import registry
from flmarket_sim.strategy.cheats.cheat import (
    Cheat,
    CheckedPlan,
    Plan,
    PublicRules,
    RemembersMessages,
    ResumableCheat,
    SaleView,
    check_plan,
)
from flmarket_sim.strategy.cheats.rehearsal import Rehearsed, rehearse

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SAVING = ("more-noise", "nothing-but-noise", "stale", "public-direction", "fewer-records")
CANNOT = "a rational cheat cannot choose {!r}: false labels save nothing"
TIE = 1e-9  # of the payment: a cheat that gains no more than this is not worth the trouble


def _known(names: Sequence[str]) -> Sequence[str]:
    for name in names:
        if name == Rational.name:
            raise ValueError("a rational cheat does not choose itself")
        try:
            found = registry.cheats.get(name)
        except InputError as error:
            raise ValueError(str(error)) from None
        if getattr(found, "false_labels", False):
            raise ValueError(CANNOT.format(name))
    return names


class Rational:
    """Chooses, for each sale, honesty or the cheat with the highest expected gain for its time.

    The gain of a choice is the money on which she counts under the market's check, less the true
    cost of what her records lose. Its time is the sale itself and those that she expects to miss
    while she is excluded, within the rounds that are left. So she ranks choices as if she met the
    same sale again and again (renewal reward). An exclusion does not change whether a sale pays:
    she accepts by the gain alone.

    She knows how often each choice is accused from rehearsals (`rehearsal.py`) at the nearest half
    octave of her privacy loss. What a reputation earns her later does not count, and neither does
    what `contribution.pays` makes of the auction's offer. Of equal choices she takes the first, and
    honesty before all.
    """

    name = "rational"

    def __init__(
        self,
        cheats: Annotated[Sequence[str], Field(min_length=1), AfterValidator(_known)] = SAVING,
        rehearsals: Annotated[int, Field(ge=1, le=10**5)] = 40,
    ) -> None:
        self.names: tuple[str | None, ...] = (None, *cheats)
        self.candidates: list[Cheat] = [registry.cheats.create(name) for name in cheats]
        self.rehearsals = rehearsals
        self.known: dict[tuple[int, int], Rehearsed] = {}
        self.choices: dict[int, Ints] = {}

    def plan(self, view: SaleView) -> Plan:
        plans = [honest_plan(view)]
        for cheat in self.candidates:
            plans.append(check_plan(cheat.name, cheat.plan(view), view))
            if plans[-1].labels is not None:
                raise InputError(CANNOT.format(cheat.name))
        accused, partial = self._risks(view)
        rates, expected = rates_of(view, plans, accused, partial)
        rates[0] += TIE * view.payment
        choice = np.argmax(rates, axis=0)
        self.choices[view.buyer] = choice
        each = np.arange(len(choice))

        def chosen(key: str) -> Floats:
            return np.asarray(np.stack([getattr(plan, key) for plan in plans])[choice, each])

        repeated = np.full((len(choice), view.rules.dimension), np.nan)
        for place, plan in enumerate(plans):
            if plan.repeated is not None:
                repeated[choice == place] = plan.repeated[choice == place]
        return Plan(
            released_at=chosen("released_at"),
            lost=chosen("lost"),
            records=chosen("records"),
            scale=chosen("scale"),
            repeated=repeated,
            expected=expected[choice, each],
        )

    def updates(self, view: SaleView, updates: Floats) -> Floats:
        """Every candidate sees every round, so that its memory is up to date when it is chosen."""
        made = updates.copy()
        for place, cheat in enumerate(self.candidates, start=1):
            rows = np.flatnonzero(self.choices[view.buyer] == place)
            made[rows] = cheat.updates(view.at(rows), updates[rows])
        return made

    def sent(self, buyer: int, owner: int, message: Floats) -> None:
        for cheat in self.candidates:
            if isinstance(cheat, RemembersMessages):
                cheat.sent(buyer, owner, message)

    def state(self) -> dict[str, Any]:
        return {
            f"{place} {key}": value
            for place, cheat in enumerate(self.candidates)
            if isinstance(cheat, ResumableCheat)
            for key, value in cheat.state().items()
        }

    def restore(self, state: dict[str, Any]) -> None:
        for place, cheat in enumerate(self.candidates):
            if isinstance(cheat, ResumableCheat):
                begin = f"{place} "
                own = {k.removeprefix(begin): v for k, v in state.items() if k.startswith(begin)}
                cheat.restore(own)

    def _risks(self, view: SaleView) -> tuple[Floats, Floats]:
        """(J, k), (J, k): see `Rehearsed`; nobody is accused where the broker does not look."""
        shape = (len(self.names), len(view.owners))
        accused, partial = np.zeros(shape), np.full(shape, 0.5)
        if view.rules.inspection is None:
            return accused, partial
        for row, loss in enumerate(view.privacy_loss.tolist()):
            found = self._rehearsed(view.buyer, view.rules, loss)
            accused[:, row], partial[:, row] = found.accused, found.partial
        return accused, partial

    def _rehearsed(self, buyer: int, rules: PublicRules, loss: float) -> Rehearsed:
        step = round(2 * math.log2(loss))
        if (buyer, step) not in self.known:
            at = 2.0 ** (step / 2)
            self.known[buyer, step] = rehearse(self.names, rules, at, self.rehearsals)
        return self.known[buyer, step]


def honest_plan(view: SaleView) -> CheckedPlan:
    """What honest owners do."""
    return check_plan("honest", Plan(), view)


def rates_of(
    view: SaleView, plans: Sequence[CheckedPlan], accused: Floats, partial: Floats
) -> tuple[Floats, Floats]:
    """(J, k) expected gains of J plans for each sale that they take up, and the money (J, k) on
    which their owners count.

    `accused` and `partial` (J, k) are as in `Rehearsed`. Who is accused with the chance a, and then
    misses m sales, has taken up 1 + a m sales for one gain.
    """
    cost = np.stack([view.cost(plan.lost, plan.records) for plan in plans])
    payment = np.broadcast_to(view.payment, cost.shape)
    inspection = view.rules.inspection
    if inspection is None:
        return payment - cost, payment
    rules = inspection.consequences
    money = rules.expected(payment, accused, partial)
    missed = 0.0
    if "exclusion" in rules.kinds:
        left = max(view.rules.rounds - view.round - 1, 0)
        missed = view.rules.asked_share * min(rules.exclusion, left)
    return (money - cost) / (1.0 + accused * missed), money
