"""Checkpoints: the state of a market between two rounds, from which a stopped run continues.

A process that waits for a message cannot be stored. So a checkpoint is taken at the end of a round
when only money is under way. It is one .npz file with arrays and JSON (`checkpoint_file.py`); no
code is stored in it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol, runtime_checkable

import numpy as np
import pydantic
from numpy.typing import NDArray

from flmarket_sim.errors import FlmarketError, shortened
from flmarket_sim.eventlog.parquet_log import ADVICE, ParquetLog
from flmarket_sim.learning.learner import Learner
from flmarket_sim.market.bills import Bill
from flmarket_sim.market.buyer import Buyer
from flmarket_sim.market.checkpoint_file import read_arrays, write_arrays
from flmarket_sim.market.ledger import Ledger
from flmarket_sim.market.mail import Letter, arrivals, failing
from flmarket_sim.market.messages import Payment
from flmarket_sim.market.model_keeper import ModelKeeper
from flmarket_sim.market.world import World
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.storage.atomic_files import disk_error, write_whole
from flmarket_sim.strategy.behaviours.behaviour import ResumableBehaviour
from flmarket_sim.strategy.cheats.cheat import ResumableCheat

FORMAT: Final = 2
NAME = "checkpoint.npz"
SECONDS = 5.0
SHARE = 0.02  # the largest part of a run's time that goes into checkpoints
AGAIN = "resume again: everything is simulated from the beginning, to the same bytes"
LEDGER = ("sold", "reserved", "gradients", "earned", "transferred")
WATCHED = ("lost", "forfeited", "cost", "judged", "accused")  # where there are cheats or a check
BILL = ("names", "people", "amounts")
Arrays = dict[str, NDArray[Any]]


Moment = Annotated[float, pydantic.Field(ge=0)]
Count = Annotated[int, pydantic.Field(ge=0, lt=2**62)]


@runtime_checkable
class Remembers(Protocol):
    """What has a memory that is arrays: behaviours, cheats, and brokers who look for cheats."""

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: dict[str, Any]) -> None: ...


class Stored(pydantic.BaseModel):
    """A part of a checkpoint; a checkpoint with anything else in it is damaged."""

    model_config = pydantic.ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False
    )


class LogPlace(Stored):
    """The state of the log: number of parts, their last event, the last event, and hashes."""

    part: Count
    flushed: Count
    seq: Count
    sha256: dict[str, str]


class DueBill(Stored):
    """Money under way; arrays of the checkpoint say who gets it."""

    due: Moment
    buyer: Count
    round: Count


class Facts(Stored):
    """Simulated time, finished rounds of each buyer, state of the log, and unpaid bills.

    `provenance` is what these numbers depend on (provenance.py).
    """

    format: Literal[2] = FORMAT
    scenario_sha256: str
    provenance: dict[str, str] = {}
    time: Moment
    rounds: list[Count]
    log: LogPlace
    bills: list[DueBill]


@dataclass(frozen=True)
class Checkpoint:
    """A market between two rounds: facts, and arrays with the state of all participants."""

    facts: Facts
    arrays: Arrays


class Checkpoints:
    """Keeps the latest checkpoint of a running market beside its log."""

    def __init__(self, log: ParquetLog, models: ModelKeeper, provenance: dict[str, str]) -> None:
        self.log, self.models, self.path = log, models, log.folder.parent / NAME
        self.provenance = provenance
        self._next = time.monotonic() + SECONDS

    def after_round(self, world: World, buyers: Sequence[Buyer], now: bool = False) -> None:
        """Writes a checkpoint if one is due (or wanted `now`) and can be taken."""
        began = time.monotonic()
        if (began < self._next and not now) or not can_be_saved(world, buyers):
            return
        if failing(world.env) or (bills := _money_under_way(world)) is None:
            return
        self.log.note()
        taken = _take(world, self, buyers, bills)
        write_checkpoint(self.log, taken)
        ended = time.monotonic()
        self._next = ended + max(SECONDS, (ended - began) / SHARE)


def can_be_saved(world: World, buyers: Sequence[Buyer]) -> bool:
    """Whether all that a market remembers can be stored.

    The memory of a plug-in from outside the package is unknown, unless it is a ResumableBehaviour.
    """
    behaviours = [] if world.cast is None else world.cast.behaviours
    others: list[Any] = [world.delay]
    for buyer in buyers:
        others += [*_learning(buyer), buyer.broker.auction, buyer.broker.rule]
        others += [] if buyer.broker.inspection is None else [buyer.broker.inspection.check]
    ours = all(one is None or _ours(one) for one in others)
    resumable = all(_ours(one) or isinstance(one, ResumableBehaviour) for one in behaviours)
    cheats = [] if world.cheating is None else world.cheating.cheats
    return ours and resumable and all(_ours(o) or isinstance(o, ResumableCheat) for o in cheats)


def _ledger(ledger: Ledger) -> tuple[str, ...]:
    return LEDGER + (WATCHED if ledger.watched else ())


def _memories(world: World, buyers: Sequence[Buyer]) -> dict[str, Remembers]:
    """What remembers anything beside the ledger and the learners, by the name in a checkpoint."""
    named: list[tuple[str, object]] = []
    if world.cast is not None:
        named += [(f"behaviour {i}", one) for i, one in enumerate(world.cast.behaviours)]
    if world.cheating is not None:
        named += [(f"cheat {i}", one) for i, one in enumerate(world.cheating.cheats)]
    named += [(f"inspection {buyer.index}", buyer.broker.inspection) for buyer in buyers]
    return {name: one for name, one in named if isinstance(one, Remembers)}


def _learning(buyer: Buyer) -> tuple[Any, ...]:
    """Her model, and the schedule of her optimizer, which itself says what it remembers."""
    if buyer.learner is None:
        return ()
    model = buyer.learner.model
    return model, getattr(model, "module", None), buyer.learner.schedule


def _ours(plugin: Any) -> bool:
    return type(plugin).__module__.startswith("flmarket_sim.")


def _money_under_way(world: World) -> list[tuple[float, Bill]] | None:
    """The unpaid bills with their times, in order; None if anything but money is under way."""
    bills = {id(bill.payment): bill for bill in world.bills.values()}
    expected = list(arrivals(world.env))
    if not all(isinstance(arrival.message, Payment) for arrival in expected):
        return None
    return [(a.time, bills[id(a.event)]) for a in expected if id(a.event) in bills]


def _take(
    world: World, keeper: Checkpoints, buyers: Sequence[Buyer], bills: list[tuple[float, Bill]]
) -> Checkpoint:
    log = keeper.log
    facts = Facts(
        scenario_sha256=world.scenario.digest(),
        provenance=keeper.provenance,
        time=float(world.env.now),
        rounds=[buyer.done for buyer in buyers],
        log=place_of(log),
        bills=[DueBill(due=float(due), buyer=bill.buyer, round=bill.round) for due, bill in bills],
    )
    learners = [buyer.learner for buyer in buyers]
    arrays = market_arrays(world.ledger, learners, keeper.models)
    for place, (_, bill) in enumerate(bills):
        arrays |= {f"bill {place} {column}": getattr(bill, column) for column in BILL}
    for name, memory in _memories(world, buyers).items():
        arrays |= {f"{name} {key}": np.asarray(value) for key, value in memory.state().items()}
    return Checkpoint(facts, arrays)


def restore(
    checkpoint: Checkpoint, world: World, buyers: Sequence[Buyer], keeper: Checkpoints
) -> None:
    """Gives a new world of the same scenario the state of the checkpoint.

    Refuses a log and kept models that are not those of the checkpoint.
    """
    log, facts, arrays = keeper.log, checkpoint.facts, checkpoint.arrays
    where = log.folder.parent
    with refusing_damage(where):
        learners = [buyer.learner for buyer in buyers]
        restore_market(checkpoint, world.scenario, log, world.ledger, learners, keeper.models)
        for buyer, done in zip(buyers, facts.rounds, strict=True):
            buyer.done = done
        for name, memory in _memories(world, buyers).items():
            memory.restore(_named(arrays, f"{name} "))
        _refuse_unknown(checkpoint, world, buyers, keeper)
        for place, bill in enumerate(facts.bills):
            _expect(world, buyers, bill, *(arrays[f"bill {place} {column}"] for column in BILL))


def market_arrays(
    ledger: Ledger, learners: Sequence[Learner | None], models: ModelKeeper
) -> Arrays:
    """What every market remembers between two rounds: the ledger, and by buyer what she learns
    with and the hashes of her kept models."""
    arrays: Arrays = {f"ledger {column}": getattr(ledger, column) for column in _ledger(ledger)}
    for index, learner in enumerate(learners):
        if learner is not None:
            arrays |= {f"learner {index} {key}": array for key, array in learner.state().items()}
        if models.keeps(index):
            arrays[f"models {index}"] = models.saved(index)
    return arrays


def restore_market(
    checkpoint: Checkpoint,
    scenario: Scenario,
    log: ParquetLog,
    ledger: Ledger,
    learners: Sequence[Learner | None],
    models: ModelKeeper,
) -> None:
    """Gives a market, its log and its kept models the state of a checkpoint of its scenario."""
    facts, arrays, where = checkpoint.facts, checkpoint.arrays, log.folder.parent
    again = f"delete {where / NAME} and {AGAIN}"
    if facts.scenario_sha256 != scenario.digest():
        raise FlmarketError(f"{where / NAME} is of another scenario; {again}")
    if not (
        facts.log.flushed <= facts.log.seq and all(done <= scenario.rounds for done in facts.rounds)
    ):
        raise ValueError("it is ahead of its run")
    log.restore(facts.log.part, facts.log.flushed, facts.log.seq)
    wrong = [kind for kind, digest in log.digests().items() if facts.log.sha256.get(kind) != digest]
    if wrong:
        raise FlmarketError(
            f"parts of {', '.join(wrong)} are damaged or missing in {log.folder}; "
            f"delete these and {again}"
        )
    for column in _ledger(ledger):
        owned = getattr(ledger, column)
        owned[:] = _like(owned, arrays[f"ledger {column}"])
    for index, (learner, done) in enumerate(zip(learners, facts.rounds, strict=True)):
        if learner is not None:
            learner.restore(_named(arrays, f"learner {index} "))
        if models.keeps(index):
            hashes = arrays[f"models {index}"]
            if lost := models.restore(index, done, hashes):
                raise FlmarketError(f"{lost} is damaged or missing; delete it and {again}")


@contextmanager
def refusing_damage(where: Path) -> Iterator[None]:
    """Says in words that the checkpoint in a directory is damaged, whatever its content breaks."""
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise FlmarketError(
            f"{where / NAME} is damaged ({type(error).__name__}: {error}); "
            f"delete {where / NAME} and {AGAIN}"
        ) from None


def _refuse_unknown(
    checkpoint: Checkpoint, world: World, buyers: Sequence[Buyer], keeper: Checkpoints
) -> None:
    """Refuses an array that this market does not remember."""
    exact = {f"ledger {column}" for column in _ledger(world.ledger)}
    exact |= {f"models {buyer.index}" for buyer in buyers if keeper.models.keeps(buyer.index)}
    exact |= {
        f"bill {place} {name}" for place in range(len(checkpoint.facts.bills)) for name in BILL
    }
    begins = [f"learner {buyer.index} " for buyer in buyers if buyer.learner is not None]
    begins += [f"{name} " for name in _memories(world, buyers)]
    for name in checkpoint.arrays:
        if name not in exact and not name.startswith(tuple(begins)):
            raise ValueError(f"an array {name!r} that this market does not have")


def _named(arrays: Arrays, begin: str) -> Arrays:
    """The arrays whose names begin so, by the rest of their names."""
    return {key.removeprefix(begin): a for key, a in arrays.items() if key.startswith(begin)}


def _like(known: NDArray[Any], stored: NDArray[Any]) -> NDArray[Any]:
    """The stored array, if it has the type and shape of a known one, and only finite numbers."""
    if stored.dtype != known.dtype or stored.shape != known.shape or not np.isfinite(stored).all():
        raise ValueError(
            f"{stored.dtype} {stored.shape} where {known.dtype} {known.shape} was, "
            "or numbers that are not finite"
        )
    return stored


def _expect(
    world: World,
    buyers: Sequence[Buyer],
    due: DueBill,
    names: NDArray[Any],
    people: NDArray[Any],
    amounts: NDArray[Any],
) -> None:
    """Schedules money that was under way: it arrives when it would have arrived."""
    _like(np.zeros(len(names), np.int64), names)
    _like(np.zeros(len(names), np.int64), people)
    _like(np.zeros(len(names)), amounts)
    buyer = buyers[due.buyer]
    in_range = (
        len(names)
        and names.min() >= 0
        and people.min() >= 0
        and people.max() < len(world.population)
    )
    if (
        not in_range
        or names.max() >= 2**31
        or amounts.min() < 0
        or due.due < world.env.now
        or due.round >= buyer.done
    ):
        raise ValueError("a bill that is impossible in this market")
    payment = Letter(world.env)
    bill = Bill(buyer.index, due.round, names, people, amounts, payment)
    world.bills[bill.buyer, bill.round] = bill
    payment.callbacks.append(lambda _: buyer.broker.pay(bill))
    payment.send_at(Payment(float(amounts.sum())), due.due)


def write_checkpoint(log: ParquetLog, checkpoint: Checkpoint) -> None:
    """Replaces the checkpoint beside a log, and keeps the journal that the new one needs."""
    path = log.folder.parent / NAME
    text = np.frombuffer(checkpoint.facts.model_dump_json().encode(), np.uint8)
    arrays = {"facts": text} | checkpoint.arrays
    try:
        write_whole(path, lambda fresh: write_arrays(fresh, arrays))
    except OSError as error:
        raise disk_error(path, error, ADVICE) from error
    log.stand_on(log.part)


def place_of(log: ParquetLog) -> LogPlace:
    """Where a log is, for a checkpoint."""
    return LogPlace(part=log.part, flushed=log.flushed, seq=log.seq, sha256=log.digests())


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """Reads the checkpoint of a run's directory; None if there is no checkpoint."""
    path = folder / NAME
    try:
        arrays = read_arrays(path)
        return Checkpoint(Facts.model_validate_json(arrays.pop("facts").tobytes()), arrays)
    except FileNotFoundError:
        return None
    except MemoryError:
        reason = "it asks for more memory than there is"
    except Exception as error:  # zipfile and numpy raise many kinds of errors for a damaged archive
        reason = (
            "facts that cannot be"
            if isinstance(error, pydantic.ValidationError)
            else shortened(str(error))
        )
    raise FlmarketError(f"{path} is damaged ({reason}); delete it and {AGAIN}")
