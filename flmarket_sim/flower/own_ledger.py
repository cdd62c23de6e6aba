"""An owner's ledger, on her own disk: what she bid, sold and earned, whatever a server says.

It is one SQLite file. A gradient leaves only after its privacy loss is on the disk, so a kill can
cost her money but never privacy that she has not booked. Every reply is kept until the next round
of the same buyer: whoever asks again gets the same answer, and it is sold once.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.market.ledger import WITHIN

FILE = "ledger.sqlite"
PATIENCE = 60.0  # seconds to wait for another process of the same owner
OPEN = 3600.0  # seconds after which a promise that no server has called in counts no longer
TABLES = """
CREATE TABLE IF NOT EXISTS sales (
    run TEXT, buyer INTEGER, round INTEGER, privacy_loss REAL, delta REAL, payment REAL,
    sold INTEGER, time REAL, PRIMARY KEY (run, buyer, round));
CREATE TABLE IF NOT EXISTS earnings (
    run TEXT, buyer INTEGER, round INTEGER, amount REAL, PRIMARY KEY (run, buyer, round));
CREATE TABLE IF NOT EXISTS replies (
    run TEXT, buyer INTEGER, round INTEGER, type TEXT, place INTEGER, request TEXT, reply BLOB,
    PRIMARY KEY (run, buyer, round, type, place));
CREATE TABLE IF NOT EXISTS events (
    number INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT, buyer INTEGER, round INTEGER, time REAL,
    kind TEXT, sent INTEGER, cells TEXT);
"""


class Key(NamedTuple):
    """One round of one buyer in a run."""

    run: str
    buyer: int
    round: int


class Totals(NamedTuple):
    """What an owner has sold (sums of e and of delta, gradients) and earned over all runs."""

    privacy_sold: float
    delta_sold: float
    gradients: int
    earned: float


class OwnLedger:
    """The ledger of one owner in a folder of hers.

    A lifetime budget holds over all runs, servers and restarts. It can be raised, by the owner
    alone, by another value here.
    """

    def __init__(self, folder: Path, lifetime_budget: float | None) -> None:
        self.path = folder / FILE
        self.lifetime_budget = lifetime_budget
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            with self._whole():
                for statement in TABLES.split(";"):
                    self._connection.execute(statement)
                names = {row[1] for row in self._connection.execute("PRAGMA table_info(sales)")}
                if "time" not in names:  # a ledger of an older version
                    self._connection.execute("ALTER TABLE sales ADD COLUMN time REAL DEFAULT 0")
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"the ledger {self.path} cannot be used: {error}") from None

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Everything in the block is stored, or nothing. Other processes wait."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def totals(self) -> Totals:
        """Promises that are not kept yet do not count."""
        sold = self._one(
            "SELECT TOTAL(privacy_loss), TOTAL(delta), COUNT(*) FROM sales WHERE sold = 1"
        )
        (earned,) = self._one("SELECT TOTAL(amount) FROM earnings")
        return Totals(sold[0], sold[1], sold[2], earned)

    def remaining(self) -> float:
        """The privacy loss that she may still promise; promises count as if they were kept, for an
        hour. So a server that never buys takes her budget from others for an hour at most."""
        if self.lifetime_budget is None:
            return float("inf")
        return max(self.lifetime_budget - self._promised(), 0.0)

    def _promised(self) -> float:
        """What is sold, and what is promised and still open."""
        (promised,) = self._one(
            "SELECT TOTAL(privacy_loss) FROM sales WHERE sold = 1 OR time > ?",
            (time.time() - OPEN,),
        )
        return float(promised)

    def reserve(self, key: Key, privacy_loss: float, payment: float, delta: float) -> bool:
        """Promises a sale in a round; False if it does not fit into the lifetime budget.

        A round has one sale: a promise of the round that was not kept is replaced.
        """
        with self._whole():
            if self._one("SELECT COUNT(*) FROM sales WHERE sold = 1 AND " + ROUND, key)[0]:
                return False
            self._connection.execute("DELETE FROM sales WHERE " + ROUND, key)
            if not self._fits(privacy_loss):
                return False
            self._connection.execute(
                "INSERT INTO sales VALUES (?, ?, ?, ?, ?, ?, 0, ?)",
                (*key, privacy_loss, delta, payment, time.time()),
            )
        return True

    def _fits(self, privacy_loss: float) -> bool:
        """Whether a loss fits into the lifetime budget beside all that is sold and promised."""
        budget = self.lifetime_budget
        return budget is None or self._promised() + privacy_loss <= budget * WITHIN

    def release(self, key: Key) -> None:
        """Cancels a promise that was not kept."""
        with self._whole():
            self._connection.execute("DELETE FROM sales WHERE sold = 0 AND " + ROUND, key)

    def release_all(self, run: str) -> None:
        """Cancels all promises of a run that were not kept: the run is over."""
        with self._whole():
            self._connection.execute("DELETE FROM sales WHERE sold = 0 AND run = ?", (run,))

    def sell(self, key: Key, type: str, request: str, reply: dict[str, Any]) -> None:
        """Books a promise as sold, with the reply that has the gradient: both or neither.

        After this call, and only then, the reply may leave.
        """
        with self._whole():
            promise = self._one("SELECT privacy_loss FROM sales WHERE sold = 0 AND " + ROUND, key)
            if promise is None:
                raise FlmarketError(f"{self.path} has no promise for round {key.round}")
            self._connection.execute("UPDATE sales SET time = 0 WHERE " + ROUND, key)
            if not self._fits(promise[0]):  # it ran out, and others have taken its place
                raise FlmarketError(f"the promise for round {key.round} has run out")
            self._connection.execute("UPDATE sales SET sold = 1 WHERE " + ROUND, key)
            self._keep(key, type, request, reply)

    def earn(self, key: Key, amount: float) -> bool:
        """Books a payment; False if it is known already."""
        with self._whole():
            known = self._one("SELECT COUNT(*) FROM earnings WHERE " + ROUND, key)[0]
            if not known:
                self._connection.execute("INSERT INTO earnings VALUES (?, ?, ?, ?)", (*key, amount))
        return not known

    def reply(self, key: Key, type: str, request: str, place: int = 0) -> dict[str, Any] | None:
        """What she answered to this request; None if she was not asked this yet.

        Refuses another request of the same kind for the same round: a round has one of each.
        """
        row = self._connection.execute(
            f"SELECT request, reply FROM replies WHERE {ROUND} AND type = ? AND place = ?",
            (*key, type, place),
        ).fetchone()
        if row is None:
            return None
        if row[0] != request:
            raise FlmarketError(
                f"{type} of round {key.round} was asked before, with other numbers; one round has "
                "one auction and one sale"
            )
        return _with_bytes(json.loads(row[1]))

    def keep(
        self, key: Key, type: str, request: str, reply: dict[str, Any], place: int = 0
    ) -> None:
        """Keeps an answer, and forgets the answers and open promises of the buyer's earlier rounds.

        A promise that is still open when a later round has begun will not be kept: `sell` refuses.
        """
        with self._whole():
            earlier = "run = ? AND buyer = ? AND round < ?"
            self._connection.execute("DELETE FROM replies WHERE " + earlier, key)
            self._connection.execute("DELETE FROM sales WHERE sold = 0 AND " + earlier, key)
            self._keep(key, type, request, reply, place)

    def _keep(
        self, key: Key, type: str, request: str, reply: dict[str, Any], place: int = 0
    ) -> None:
        text = json.dumps(
            {k: {"hex": v.hex()} if isinstance(v, bytes) else v for k, v in reply.items()}
        )
        self._connection.execute(
            "INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*key, type, place, request, text),
        )

    def answered(self, key: Key, type: str, place: int = 0) -> dict[str, Any] | None:
        """Her answer of this kind in a round, whatever the request was."""
        row = self._connection.execute(
            f"SELECT reply FROM replies WHERE {ROUND} AND type = ? AND place = ?",
            (*key, type, place),
        ).fetchone()
        return None if row is None else _with_bytes(json.loads(row[0]))

    def log(self, key: Key, kind: str, sent: bool, cells: dict[str, Any]) -> None:
        """Adds an event to her own view."""
        with self._whole():
            self._connection.execute(
                "INSERT INTO events (run, buyer, round, time, kind, sent, cells) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*key, time.time(), kind, int(sent), json.dumps(cells)),
            )

    def events(self, run: str) -> list[tuple[int, int, float, str, bool, dict[str, Any]]]:
        """Buyer, round, time, kind, whether she sent it, and cells of her events in a run."""
        rows = self._connection.execute(
            "SELECT buyer, round, time, kind, sent, cells FROM events WHERE run = ? "
            "ORDER BY number",
            (run,),
        )
        return [(*row[:4], bool(row[4]), json.loads(row[5])) for row in rows]

    def runs(self) -> list[str]:
        """The runs that she has taken part in, in order."""
        rows = self._connection.execute("SELECT run FROM events GROUP BY run ORDER BY MIN(number)")
        return [row[0] for row in rows]

    def _one(self, query: str, values: tuple[Any, ...] = ()) -> Any:
        return self._connection.execute(query, values).fetchone()


ROUND = "run = ? AND buyer = ? AND round = ?"


def _with_bytes(stored: dict[str, Any]) -> dict[str, Any]:
    return {k: bytes.fromhex(v["hex"]) if isinstance(v, dict) else v for k, v in stored.items()}
