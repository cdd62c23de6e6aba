"""The gradients of a cohort: computed and prepared together, perturbed when an owner sends hers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.eventlog.schema import GradientRecord
from flmarket_sim.market.messages import Offers
from flmarket_sim.market.owners_work import OwnersWork
from flmarket_sim.owners.population import Population
from flmarket_sim.perturbation.perturbation import AddsNoise, Perturbation, delta_of, message_bytes
from flmarket_sim.privacy.release import Release
from flmarket_sim.randomness import Purpose, Streams

if TYPE_CHECKING:
    from flmarket_sim.market.cohort import Cohort

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class CohortGradients:
    """Prepared gradients of all bidders, by rows of the offers; the log compares with all of them.

    `honest` are the gradients that owners who cheat do not send. These arrays are large, and only
    their last reader should keep them alive.
    """

    def __init__(self, cohort: Cohort, parameters: Floats | None, offers: Offers) -> None:
        world, clip = cohort.world, cohort.world.scenario.privacy.clip
        perturbation, noise = world.randomisers[cohort.buyer]
        self.key = (cohort.round, cohort.buyer)
        self.participants = cohort.participants[offers.slots]
        sizes = cohort.records[offers.slots].astype(np.int64)
        self.reported_size = cohort.reports.data_size[offers.slots]
        self.release: Release | None = None
        self.honest: Floats | None = None
        self.cheats = cheats = None if parameters is None else cohort.cheats(offers)
        norms: Any = None
        finite: Any = None
        if parameters is not None:
            misreports = cohort.misreports
            skipped = None if misreports is None else misreports.first_record[offers.slots]
            offered = self.reported_size.astype(np.int64)
            rows = records(world.population, cohort.people[offers.slots], offered, skipped)
            rows = rows[sold_part(offered, sizes, world.streams, self.participants, self.key)]
            work = OwnersWork(cohort, parameters, rows, sizes, self.participants)
            raw = work.updates()
            losses, after = offers.privacy_loss.copy(), None
            if cheats is not None:
                losses[cheats.rows], after = cheats.released_at, cheats.after_release()
                honest = raw[cheats.rows]
                raw[cheats.rows] = cheats.updates(raw, work.updates_of)
                made = Release(honest, cheats.sold.tolist(), perturbation, clip, noise)
                self.honest = made.prepared
            self.release = Release(raw, losses.tolist(), perturbation, clip, noise, after)
            norms, finite = self.release.norms, self.release.finite
        dimension = 0 if parameters is None else len(parameters)
        record = gradient_record(
            perturbation,
            clip,
            dimension,
            offers.privacy_loss,
            sizes,
            cohort.variance(offers.privacy_loss),
            norms,
            finite,
        )
        self.cheated = None if cheats is None else cheats.table(cohort)
        self.sent = cohort.table(record, self.participants)
        self.costs = SentCosts(cohort, offers) if world.ledger.watched else None

    def perturbed(self, row: int) -> Floats | None:
        """The gradient of a row as it leaves its owner; None in a market without learning."""
        if self.release is None:
            return None
        message = self.release.leave(row, int(self.participants[row]), *self.key)
        if self._cheats(row):
            assert self.cheats is not None
            self.cheats.sent(row, message)
        return message

    def happen(self, row: int, time: float) -> None:
        """Logs that the gradient of a row leaves its owner, and the truth about it."""
        self.sent.happen(row, time)
        if self.cheated is not None and self.cheats is not None and self._cheats(row):
            self.cheated.happen(self.cheats.place[row], time)

    def lost(self, row: int) -> float | None:
        """What the records of a row lose by its message, where that is not what was sold."""
        if self.cheats is None or not self._cheats(row):
            return None
        return float(self.cheats.lost[self.cheats.place[row]])

    def cost(self, row: int) -> float:
        """What the message of a row costs its owner, after those that have left her; 0 where the
        ledger does not ask."""
        return 0.0 if self.costs is None else self.costs.of(row)

    def _cheats(self, row: int) -> bool:
        return self.cheats is not None and row in self.cheats.place

    def true_error(self, delivered: Floats, weights: Floats) -> tuple[float, float]:
        """Squared distance of a delivered gradient to the noiseless one of all bidders; its bias.

        The noiseless one is the mean by records of what all bidders would release without noise if
        nobody cheated.

        For the log only: nobody in the market can know this.
        """
        assert self.release is not None
        share = self.reported_size / self.reported_size.sum()
        ideal = share @ self.release.prepared
        bias = weights @ self.release.prepared - ideal
        if self.cheats is not None and self.honest is not None:
            rows = self.cheats.rows
            prepared = self.release.prepared[rows]
            sent = np.stack([self.release.mean(row) for row in rows.tolist()])
            added = share[rows] @ (self.honest - prepared)
            ideal = ideal + added
            bias = bias + weights[rows] @ (sent - prepared) - added
        return float(np.square(delivered - ideal).sum()), float(np.square(bias).sum())


class SentCosts:
    """What messages truly cost their owners, one after the other as they leave.

    The last message of a person with several names brings her to what all of hers cost together.
    """

    def __init__(self, cohort: Cohort, offers: Offers) -> None:
        self.cohort, self.offers = cohort, offers
        self.person = cohort.people[offers.slots]
        self.alone = cohort.true_costs(offers, np.arange(len(offers.slots)))
        self.left: dict[int, list[int]] = {}  # by person, the rows that have left her

    def of(self, row: int) -> float:
        """The cost of the message of a row, which leaves now."""
        if not self.cohort.accounts:
            return float(self.alone[row])
        before = self.left.setdefault(int(self.person[row]), [])
        cost = self._together([*before, row]) - self._together(before)
        before.append(row)
        return cost

    def _together(self, rows: list[int]) -> float:
        return float(self.cohort.true_costs(self.offers, np.array(rows, np.int64)).sum())


def gradient_record(
    perturbation: Perturbation,
    clip: float,
    dimension: int,
    losses: Floats,
    sizes: Ints,
    variance: Floats,
    norms: Any = None,
    finite: Any = None,
) -> GradientRecord:
    """Gradients of D = `dimension` coordinates (0: without learning) in the log, by columns (n,).

    `norms` and `finite` are what only their owners know.
    """
    return GradientRecord(
        privacy_loss=losses,
        records=sizes,
        norm=norms,
        clipped=None if norms is None else norms > clip,
        noise_scale=perturbation.noise_scale(losses, clip)
        if isinstance(perturbation, AddsNoise)
        else None,
        bytes=_message_bytes(perturbation, dimension, losses),
        variance=variance,
        delta=delta_of(perturbation),
        finite=finite,
    )


def _message_bytes(perturbation: Perturbation, dimension: int, losses: Floats) -> Ints:
    """(n,) sizes of the messages; 0 in a market without learning."""
    if dimension == 0:
        return np.zeros(len(losses), np.int64)
    sizes = [message_bytes(perturbation, dimension, loss) for loss in losses.tolist()]
    return np.array(sizes, np.int64)


def sold_part(
    offered: Ints, sold: Ints, streams: Streams, participants: Ints, key: tuple[int, int]
) -> Ints | slice:
    """Places of the records that are sold, among those that are offered, one owner after the other.

    An owner who sells on a part of her records sells a random part. The first ones would not do:
    an owner's records are in the order of their classes.
    """
    if (sold >= offered).all():
        return slice(None)
    begin = np.cumsum(offered) - offered
    places = []
    for first, whole, part, name in zip(begin, offered, sold, participants, strict=True):
        place = np.arange(whole)
        if part < whole:
            rng = streams.generator(Purpose.SOLD, *key, int(name))
            place = np.sort(rng.choice(whole, part, replace=False))
        places.append(first + place)
    return np.concatenate(places)


def records(people: Population, owners: Ints, sizes: Ints, skipped: Ints | None = None) -> Ints:
    """Row numbers of `sizes` records of each owner, one owner after the other.

    They are her first records, or those that follow `skipped` others.
    """
    assert people.rows is not None and people.offsets is not None
    ends = np.cumsum(sizes)
    begin = people.offsets[owners] if skipped is None else people.offsets[owners] + skipped
    start = np.repeat(begin - (ends - sizes), sizes)
    return np.asarray(people.rows[start + np.arange(int(ends[-1]))])
