"""An owner's ledger, on her own disk: what she bid, sold and earned, whatever a server says.

It is one SQLite file, which several processes of hers may use. A gradient leaves only after its
privacy loss is on the disk, so a kill can cost her money but never privacy that she has not booked.
Every reply is kept until the next round of the same buyer: whoever asks again gets the same answer,
and it is sold once. What her own view has of a message is stored with her reply to it, both or
neither.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Iterator, Sequence
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
    sold INTEGER, time REAL, token TEXT, PRIMARY KEY (run, buyer, round));
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


class OwnEvent(NamedTuple):
    """What an owner's own view has of one moment (seconds since 1970); `sent`: by her."""

    time: float
    kind: str
    sent: bool
    cells: dict[str, Any]


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
                for name in {"time": "REAL", "token": "TEXT"}.items():
                    if name[0] not in names:  # a ledger of an older version
                        words = "ALTER TABLE sales ADD COLUMN {} {} DEFAULT 0"
                        self._connection.execute(words.format(*name))
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

    def remaining(self, key: Key | None = None) -> float:
        """The privacy loss that she may still promise; promises count as if they were kept, for an
        hour after the last message that asked for them.

        With the `key` of a round, promises of the buyer's earlier rounds do not count: a bid in
        this round ends them.
        """
        if self.lifetime_budget is None:
            return float("inf")
        return max(self.lifetime_budget - self._promised(key), 0.0)

    def _promised(self, key: Key | None = None) -> float:
        """What is sold, and what is promised and still open."""
        (promised,) = self._one(
            "SELECT TOTAL(privacy_loss) FROM sales WHERE sold = 1 OR (time > ? AND NOT "
            f"({EARLIER}))",
            (time.time() - OPEN, *(key or Key("", -1, 0))),
        )
        return float(promised)

    def reserve(self, key: Key, privacy_loss: float, payment: float, delta: float) -> str | None:
        """Promises a sale in a round; None if it does not fit into the lifetime budget.

        A round has one sale: a promise of the round that was not kept is replaced. What comes back
        names this promise, and who keeps or cancels it must have it.
        """
        token = secrets.token_hex(8)
        with self._whole():
            if self._one("SELECT COUNT(*) FROM sales WHERE sold = 1 AND " + ROUND, key)[0]:
                return None
            self._connection.execute("DELETE FROM sales WHERE " + ROUND, key)
            if not self._fits(privacy_loss):
                return None
            self._connection.execute(
                "INSERT INTO sales (run, buyer, round, privacy_loss, delta, payment, sold, time, "
                "token) VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?)",
                (*key, privacy_loss, delta, payment, time.time(), token),
            )
        return token

    def _fits(self, privacy_loss: float) -> bool:
        """Whether a loss fits into the lifetime budget beside all that is sold and promised."""
        budget = self.lifetime_budget
        return budget is None or self._promised() + privacy_loss <= budget * WITHIN

    def release(self, token: str) -> None:
        """Cancels a promise that was not kept."""
        with self._whole():
            self._connection.execute("DELETE FROM sales WHERE sold = 0 AND token = ?", (token,))

    def release_all(self, run: str) -> None:
        """Cancels all promises of a run that were not kept: the run is over."""
        with self._whole():
            self._connection.execute("DELETE FROM sales WHERE sold = 0 AND run = ?", (run,))

    def sell(
        self,
        key: Key,
        token: str,
        type: str,
        request: str,
        reply: dict[str, Any],
        events: Sequence[OwnEvent] = (),
    ) -> None:
        """Books the promise that `token` names as sold, with the reply that has the gradient: both
        or neither.

        After this call, and only then, the reply may leave. It refuses a promise that another
        process has replaced, so what is booked is what leaves.
        """
        with self._whole():
            mine = "sold = 0 AND token = ?"
            promise = self._one("SELECT privacy_loss FROM sales WHERE " + mine, (token,))
            if promise is None:
                raise FlmarketError(f"{self.path} has no promise for round {key.round} any more")
            self._connection.execute("UPDATE sales SET time = 0 WHERE " + mine, (token,))
            if not self._fits(promise[0]):  # it ran out, and others have taken its place
                raise FlmarketError(f"the promise for round {key.round} has run out")
            self._connection.execute("UPDATE sales SET sold = 1 WHERE " + mine, (token,))
            if not self._keep(key, type, request, reply, events):
                raise FlmarketError(f"another process has answered {type} of round {key.round}")

    def earn(self, key: Key, amount: float) -> None:
        """Books a payment once, however often it is told."""
        with self._whole():
            if not self._one("SELECT COUNT(*) FROM earnings WHERE " + ROUND, key)[0]:
                self._connection.execute("INSERT INTO earnings VALUES (?, ?, ?, ?)", (*key, amount))
                self._log(key, [OwnEvent(time.time(), "payment", False, {"amount": amount})])

    def reply(self, key: Key, type: str, request: str) -> dict[str, Any] | None:
        """What she answered to this request; None if she was not asked this yet.

        Refuses another request of the same kind for the same round: a round has one of each.
        """
        row = self._one("SELECT request, reply FROM replies WHERE " + OF_TYPE, (*key, type))
        if row is None:
            return None
        if row[0] != request:
            raise FlmarketError(
                f"{type} of round {key.round} was asked before, with other numbers; one round has "
                "one auction and one sale"
            )
        return _with_bytes(json.loads(row[1]))

    def keep(
        self, key: Key, type: str, request: str, reply: dict[str, Any], events: Sequence[OwnEvent]
    ) -> bool:
        """Keeps an answer, and forgets the answers and open promises of the buyer's earlier rounds.
        False if there is an answer already, which stays.

        A promise that is still open when a later round has begun will not be kept: `sell` refuses.
        """
        with self._whole():
            self._connection.execute("DELETE FROM replies WHERE " + EARLIER, key)
            self._connection.execute("DELETE FROM sales WHERE sold = 0 AND " + EARLIER, key)
            return self._keep(key, type, request, reply, events)

    def _keep(
        self, key: Key, type: str, request: str, reply: dict[str, Any], events: Sequence[OwnEvent]
    ) -> bool:
        """False if there is an answer already."""
        text = json.dumps(
            {k: {"hex": v.hex()} if isinstance(v, bytes) else v for k, v in reply.items()}
        )
        fresh = self._connection.execute(
            "INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, 0, ?, ?)",
            (*key, type, request, text),
        )
        if fresh.rowcount:
            self._log(key, events)
        return bool(fresh.rowcount)

    def answered(self, key: Key, type: str) -> dict[str, Any] | None:
        """Her answer of this kind in a round, whatever the request was."""
        row = self._one("SELECT reply FROM replies WHERE " + OF_TYPE, (*key, type))
        return None if row is None else _with_bytes(json.loads(row[0]))

    def _log(self, key: Key, events: Sequence[OwnEvent]) -> None:
        """Adds events to her own view."""
        self._connection.executemany(
            "INSERT INTO events (run, buyer, round, time, kind, sent, cells) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(*key, at, kind, int(sent), json.dumps(cells)) for at, kind, sent, cells in events],
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
OF_TYPE = ROUND + " AND type = ?"
EARLIER = "run = ? AND buyer = ? AND round < ?"


def _with_bytes(stored: dict[str, Any]) -> dict[str, Any]:
    return {k: bytes.fromhex(v["hex"]) if isinstance(v, dict) else v for k, v in stored.items()}
