"""A market of real clients from the first round to the last, in one run directory.

A server that was killed continues in the same directory: from the checkpoint after the last round,
and from the inbox of the round at hand.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from threadpoolctl import threadpool_limits

from flmarket_sim.errors import InputError
from flmarket_sim.eventlog import BROKER, ParquetLog, read_events
from flmarket_sim.eventlog.reader import read_scenario
from flmarket_sim.eventlog.run import Run
from flmarket_sim.eventlog.run_info import identity
from flmarket_sim.eventlog.schema import LateRecord
from flmarket_sim.eventlog.tables import table_schema
from flmarket_sim.flower.buyer_desk import BuyerDesk
from flmarket_sim.flower.inbox import StoredInbox
from flmarket_sim.flower.messages import Settlement
from flmarket_sim.flower.post import Late, Post
from flmarket_sim.flower.server_round import ServerRound, Unpaid
from flmarket_sim.flower.simulation_only import refuse_simulated
from flmarket_sim.learning.dataset import Dataset, read_data
from flmarket_sim.market.checkpoint import (
    Checkpoint,
    Facts,
    market_arrays,
    place_of,
    read_checkpoint,
    refusing_damage,
    restore_market,
    write_checkpoint,
)
from flmarket_sim.market.ledger import Ledger
from flmarket_sim.market.model_keeper import ModelKeeper, keep_first_models
from flmarket_sim.market.provenance import origin as provenance_of
from flmarket_sim.market.run_folder import REAL_CLIENTS, Findings, RunFolder
from flmarket_sim.market.simulation import Progress
from flmarket_sim.owners.population import choose_bidders, create_population, named_families
from flmarket_sim.perturbation.perturbation import delta_of
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.storage.atomic_files import write_parquet

GATHER = 300.0  # seconds to wait for clients before the first round
SETTLE = 30.0  # seconds to tell owners of their last payments


@dataclass(frozen=True)
class Settings:
    """How a server holds a market.

    drawn    whether the owners are those that the scenario draws, as in a first try and in tests
    clients  for how many clients the first round waits; None: for all owners of the scenario
    gather   for how many seconds at most
    """

    drawn: bool = False
    clients: int | None = None
    gather: float = GATHER


def serve(
    scenario: Scenario,
    out: Path,
    grid: Any,
    settings: Settings = Settings(),  # noqa: B008 - frozen
    progress: Progress | None = None,
) -> Run:
    """Holds the market of a scenario with the clients of a Grid of Flower, into the directory
    `out`; a run of the same scenario that was stopped there is continued."""
    refuse_simulated(scenario)
    if (out / "run.json").exists():
        folder = RunFolder.reopen(out)
        if REAL_CLIENTS not in folder.info or read_scenario(out).digest() != scenario.digest():
            folder.close()
            raise InputError(f"{out} holds another run; name another directory")
    else:
        began = datetime.now(UTC)
        about = {"began": began.isoformat(), "origin": began.timestamp(), "drawn": settings.drawn}
        folder = RunFolder.create(out, scenario, more={REAL_CLIENTS: about})
    try:
        if folder.finished:
            folder.tidy()
            return Run(folder.path)
        folder.check_data_files(scenario)
        with threadpool_limits(limits=1, user_api="blas"):
            return ServerMarket(folder, scenario, grid, settings).hold(progress)
    finally:
        folder.close()


class ServerMarket:
    """The broker and the buyers of a market of real clients."""

    def __init__(
        self, folder: RunFolder, scenario: Scenario, grid: Any, settings: Settings
    ) -> None:
        self.folder, self.scenario, self.settings = folder, scenario, settings
        specs, info = scenario.resolved_buyers(), folder.info
        names = tuple(spec.name for spec in specs)
        self.run = f"{scenario.digest()[:12]}-{int(1000 * info[REAL_CLIENTS]['origin'])}"
        self.log = ParquetLog(
            folder.path / "events", names, (), named_families(scenario), identity(info)
        )
        self.models = ModelKeeper(folder.path, scenario)
        learns = any(spec.model.name != "none" for spec in specs)
        self.data: Dataset | None = read_data(scenario) if learns else None
        self.streams = Streams(scenario.seed)
        people = None
        if settings.drawn:
            people = create_population(scenario, self.streams, self.data)
        self.desks = [
            BuyerDesk(scenario, index, spec, self.data, people) for index, spec in enumerate(specs)
        ]
        delta = max(delta_of(desk.perturbation) for desk in self.desks)
        self.ledger = Ledger(scenario.owners.count, None, delta)
        self.done = [0] * len(specs)
        self.unpaid: Unpaid = {}
        self._restore()
        self.inbox = StoredInbox(folder.path)
        began = float(info[REAL_CLIENTS]["origin"])
        owners = scenario.owners.count
        self.post = Post(grid, self.inbox, self.run, folder.path, owners, began, self._note_late)

    def hold(self, progress: Progress | None) -> Run:
        """All rounds that are not done, and the end of the run."""
        began, total = time.monotonic(), len(self.desks) * self.scenario.rounds
        used, self.post.in_flower = time.process_time(), 0.0
        try:
            if sum(self.done) < total:
                self._gather()
            for number in range(min(self.done), self.scenario.rounds):
                for desk in self.desks:
                    if self.done[desk.index] == number:
                        self._round(desk, number)
                        if progress is not None:
                            progress(sum(self.done), total)
            self._settle()
            bridge = time.process_time() - used - self.post.in_flower
            return self._finish(time.monotonic() - began, bridge)
        except BaseException as error:
            self.folder.stop(self.log, error, self.models)
            raise

    def _gather(self) -> None:
        wanted = self.settings.clients or self.scenario.owners.count
        if not self.post.gather(min(wanted, self.scenario.owners.count), self.settings.gather):
            raise InputError(
                f"no client was there within {self.settings.gather:g} seconds; start SuperNodes "
                "with the client app, and then the run again: it continues in the same directory"
            )

    def _round(self, desk: BuyerDesk, number: int) -> None:
        self.inbox.begin(desk.index, number)
        count, owners = self.scenario.market.bidders, self.scenario.owners.count
        asked = choose_bidders(self.streams, owners, count, desk.index, number)
        round_ = ServerRound(
            desk, number, asked, self.post, self.log, self.ledger, self.run, self.unpaid
        )
        gradient = round_.trade()
        self.done[desk.index] = number + 1
        learner = desk.learner
        if learner is not None and self.models.due(desk.index, number + 1):
            kept = (learner.parameters, gradient, learner.average)
            self.models.keep(desk.index, number + 1, *kept)
        self._checkpoint()

    def _checkpoint(self) -> None:
        """Everything so far is on the disk; the inbox of the round is not needed any more."""
        self.ledger.settle()
        self.log.flush()
        self.log.note()
        facts = Facts(
            scenario_sha256=self.scenario.digest(),
            provenance=provenance_of(self.folder.info),
            time=self.post.last,
            rounds=self.done,
            log=place_of(self.log),
            bills=[],
        )
        learners = [desk.learner for desk in self.desks]
        write_checkpoint(
            self.log, Checkpoint(facts, market_arrays(self.ledger, learners, self.models))
        )

    def _restore(self) -> None:
        """The state after the last round that was finished; the first models, if there is none."""
        start = read_checkpoint(self.folder.path)
        self.folder.go_on(self.scenario, start, mixed=False)
        learners = [desk.learner for desk in self.desks]
        if start is None:
            first = [None if learner is None else learner.parameters for learner in learners]
            keep_first_models(self.models, first)
            return
        with refusing_damage(self.folder.path):
            restore_market(start, self.scenario, self.log, self.ledger, learners, self.models)
        self.done = list(start.facts.rounds)
        paid = read_events(self.folder.path, "payment").to_pylist()
        buyers = {desk.spec.name: desk.index for desk in self.desks}
        for row in paid:  # owners know which of these they have heard of
            if row["sender"] == BROKER and row["seq"] <= start.facts.log.seq:
                entry = (buyers[row["buyer"]], row["round"], row["amount"])
                self.unpaid.setdefault(row["receiver"], []).append(entry)

    def _note_late(self, late: Late) -> None:
        """The owner of a late message is not paid; what she has sent counts in her own ledger."""
        number, buyer = late.round, late.buyer
        self.log.write(
            LateRecord(message=late.kind),
            time=late.time,
            round=number,
            buyer=buyer,
            sender=late.owner,
            receiver=BROKER,
        )

    def _settle(self) -> None:
        """Tells owners that the run is over: those who have not heard of payments, and those who
        may have promised a sale that did not come about."""
        requests = {}
        for owner in self.unpaid.keys() | open_promises(self.folder.path):
            due = self.unpaid.get(owner, [])
            requests[owner] = Settlement(
                run=self.run,
                paid_buyers=[one[0] for one in due],
                paid_rounds=[one[1] for one in due],
                paid=[one[2] for one in due],
            )
        if requests:
            self.inbox.begin(0, self.scenario.rounds)  # a round that no buyer has: the end
            self.post.tell(requests, SETTLE)

    def _finish(self, seconds: float, bridge: float) -> Run:
        self.folder.info[REAL_CLIENTS] |= {
            "owners": len(self.post.names),
            "seconds": round(seconds, 3),
            "seconds_of_the_bridge": round(bridge, 3),  # processor time beside Flower
        }
        write_parquet(self.folder.path / "owners.parquet", owners_table(self))
        self.log.files.add(self.folder.path / "owners.parquet")
        notes = list(dict.fromkeys(desk.note for desk in self.desks if desk.note is not None))
        self.folder.finish(self.ledger, self.log, self.models, Findings(notes, [], {}))
        return Run(self.folder.path)


def open_promises(run: Path) -> set[int]:
    """Owners whom a buyer asked for a sale in the last round in which they bid, and who delivered
    nothing then. A bid ends an owner's promises of the buyer's earlier rounds."""
    last = {(owner, buyer): number for owner, buyer, number in _sales(run, "bid", "sender")}
    asked = _sales(run, "allocation", "receiver") + _sales(run, "offer", "receiver")
    delivered = set(_sales(run, "gradient", "sender"))
    return {one[0] for one in asked if last.get(one[:2]) == one[2] and one not in delivered}


def _sales(run: Path, kind: str, owner: str) -> list[tuple[int, int, int]]:
    """Owner, buyer and round of all events of a kind, but for allocations of nothing."""
    rows = read_events(run, kind)
    if kind == "allocation":
        rows = rows.filter(pc.field("privacy_loss") > 0.0)
    columns = (rows.column(name).to_pylist() for name in (owner, "buyer", "round"))
    return list(zip(*columns, strict=True))


def owners_table(market: ServerMarket) -> pa.Table:
    """What the broker knows of the owners: their numbers and names."""
    schema = table_schema("owners")
    numbers, names = range(market.scenario.owners.count), market.post.names
    known: dict[str, Any] = {
        "owner": pa.array(numbers, pa.int32()),
        "name": pa.array([names.get(number) for number in numbers], pa.string()),
    }
    columns = {
        field.name: known.get(field.name, pa.nulls(len(numbers), field.type))
        for field in schema
        if field.name != "records"
    }
    return pa.table(columns)
