"""How the broker looks for owners who cheat: her check on the messages of a round, and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.checks.check import Check, Evidence, PastRound
from flmarket_sim.errors import ContractError, plugin_errors
from flmarket_sim.eventlog.record import with_nulls
from flmarket_sim.learning.local_training import owner_updates
from flmarket_sim.market.messages import BidMessage, GradientMessage, Offers
from flmarket_sim.market.world import TO_BUYER, World
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Purpose
from flmarket_sim.strategy.cheats.cheat import PublicInspection

if TYPE_CHECKING:
    from flmarket_sim.market.cohort import Cohort

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FULL = 1.0  # the reputation of an owner whom nobody has judged


@dataclass(frozen=True)
class Verdicts:
    """What the broker thinks of g messages, and what follows; each (g,).

    scores and p_values are the check's; nan where it cannot judge a message. `paid_share` is of the
    offered payments, `forfeited` are lost deposits. `reputation` and `excluded_until` are None
    where no such thing follows in this market.
    """

    scores: Floats
    p_values: Floats
    accused: NDArray[np.bool_]
    paid_share: Floats
    forfeited: Floats
    discarded: NDArray[np.bool_]
    reputation: Floats | None
    excluded_until: NDArray[np.object_] | None


class Inspection:
    """The check of one buyer's market and its memory, by the participants' numbers.

    `excluded` has the next round in which a bid counts, `reputations` those that are not full, and
    `history` the latest rounds, oldest first.
    """

    def __init__(self, world: World, buyer: int, model: Any) -> None:
        spec, rules = world.scenario.check, world.consequences
        assert spec is not None and rules is not None
        self.world, self.buyer, self.model, self.rules = world, buyer, model, rules
        self.check: Check = registry.checks.create(spec.name, **spec.options)
        self.kept, self.reference_records = spec.history, spec.reference
        self.excluded: dict[int, int] = {}
        self.reputations: dict[int, float] = {}
        self.history: list[PastRound] = []

    @property
    def public(self) -> PublicInspection:
        """What everybody knows of it."""
        return PublicInspection(
            self.check, self.rules, self.kept, self.reference_records is not None
        )

    def admits(self, name: int, round_number: int) -> bool:
        """Whether the bid of a participant counts in a round."""
        return self.excluded.get(name, 0) <= round_number

    def reputation(self, names: Ints) -> Floats:
        """(n,) in (0, 1]."""
        return np.array([self.reputations.get(name, FULL) for name in names.tolist()])

    def weighs(self, cohort: Cohort, slots: Ints) -> Floats | None:
        """(n,) the reputations of these bidders; None where reputation does not count."""
        if "reputation" not in self.rules.kinds:
            return None
        return self.reputation(cohort.participants[slots])

    def examine(
        self, cohort: Cohort, offers: Offers, gradients: Sequence[GradientMessage]
    ) -> Verdicts:
        """Judges the messages of a round, and remembers them and what follows."""
        rows = np.array([message.row for message in gradients])
        slots = offers.slots[rows]
        names = cohort.participants[slots]
        evidence = Evidence(
            messages=np.stack([m.gradient for m in gradients if m.gradient is not None]),
            privacy_loss=offers.privacy_loss[rows],
            data_size=cohort.records[slots],
            clip=self.world.scenario.privacy.clip,
            perturbation=self.world.randomisers[self.buyer].perturbation,
            owner=names,
            history=tuple(self.history),
            reference=self._reference(cohort),
        )
        scores, p_values = judged(self.check, evidence)
        if self.kept:
            past = PastRound(evidence.messages, names, scores)
            self.history = [*self.history, past][-self.kept :]
        return self._verdicts(names, offers.payment[rows], scores, p_values, cohort.round)

    def _verdicts(
        self, names: Ints, payment: Floats, scores: Floats, p_values: Floats, round_number: int
    ) -> Verdicts:
        rules, accused = self.rules, self.rules.accused(p_values)
        reputation = excluded = None
        if "reputation" in rules.kinds:
            reputation = rules.reputation(self.reputation(names), p_values)
            self.reputations.update(zip(names.tolist(), reputation.tolist(), strict=True))
        if "exclusion" in rules.kinds:
            until = round_number + 1 + rules.exclusion
            excluded = with_nulls(np.full(len(names), until), ~accused)
            self.excluded.update(dict.fromkeys(names[accused].tolist(), until))
        return Verdicts(
            scores=scores,
            p_values=p_values,
            accused=accused,
            paid_share=rules.paid_share(p_values),
            forfeited=rules.forfeited(p_values, payment),
            discarded=rules.discarded(p_values),
            reputation=reputation,
            excluded_until=excluded,
        )

    def _reference(self, cohort: Cohort) -> Floats | None:
        """(D,) what the broker computes on her own copies of some training records."""
        world, count = self.world, self.reference_records
        if count is None or cohort.parameters is None:
            return None
        assert world.data is not None
        whole = len(world.data.train_y)
        rng = world.streams.generator(Purpose.REFERENCE, self.buyer)
        rows = np.sort(rng.choice(whole, min(count, whole), replace=False))
        updates = owner_updates(
            self.model,
            world.scenario.learning,
            cohort.parameters,
            world.data,
            rows,
            np.array([len(rows)]),
            world.streams,
            np.array([TO_BUYER]),
            cohort.round,
            self.buyer,
        )
        return updates[0] if np.isfinite(updates[0]).all() else None

    def state(self) -> dict[str, NDArray[Any]]:
        """Its memory as arrays."""
        state = {
            "excluded": np.array([*self.excluded.items()], np.int64).reshape(-1, 2),
            "judged": np.array([*self.reputations], np.int64),
            "reputations": np.array([*self.reputations.values()], np.float64),
            "rounds": np.array([len(self.history)], np.int64),
        }
        for place, past in enumerate(self.history):
            state |= {f"{place} {key}": value for key, value in vars(past).items()}
        return state

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Takes over a memory that `state` gave. Raises KeyError or ValueError for another one."""
        self.excluded = {int(name): int(until) for name, until in state["excluded"]}
        names, values = state["judged"].tolist(), state["reputations"].tolist()
        self.reputations = dict(zip(names, values, strict=True))
        rounds = int(state["rounds"][0])
        if not 0 <= rounds <= self.kept:
            raise ValueError("more past rounds than this market keeps")
        keys = ("messages", "owner", "scores")
        self.history = [
            PastRound(*(state[f"{place} {key}"] for key in keys)) for place in range(rounds)
        ]


def judged(check: Check, evidence: Evidence) -> tuple[Floats, Floats]:
    """(n,) scores and (n,) p-values of a check; refuses what is not one number for each message."""
    with plugin_errors("check", check.name):
        scores = np.array(check.scores(evidence), np.float64)
        p_values = np.array(check.p_values(evidence), np.float64)
    expected = (len(evidence.messages),)
    if scores.shape != expected or p_values.shape != expected:
        raise ContractError(f"check {check.name!r} must give {expected[0]} scores and p-values")
    if not ((p_values >= 0) & (p_values <= 1)).all():
        raise ContractError(f"check {check.name!r} gives p-values that are not between 0 and 1")
    return scores, p_values


def weighed_by(bids: BidBatch, reputation: Floats) -> BidBatch:
    """The bids as the auction sees them: an owner of reputation r asks 1 / r times as much.

    She gets r times the payment of that auction. So who is paid at least what she seems to ask
    gets at least what she asks, and no report gains her more than in an auction among the others.
    """
    stated = None if bids.stated is None else bids.stated.times(1.0 / reputation)
    values = bids.values / reputation[:, None]
    return BidBatch(values, bids.privacy_budget, bids.data_size, stated)


def admitted(
    inspection: Inspection | None, cohort: Cohort, bids: list[BidMessage]
) -> list[BidMessage]:
    """The bids that count. An owner who is excluded hears nothing of this auction."""
    if inspection is None:
        return bids
    counts: list[BidMessage] = []
    for bid in bids:
        if inspection.admits(cohort.numbers[bid.slot], cohort.round):
            counts.append(bid)
        else:
            bid.reply.send(None, cohort.delays.allocation[bid.slot])
    return counts
