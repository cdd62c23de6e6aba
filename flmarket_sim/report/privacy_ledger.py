"""The privacy ledger of a run, recomputed from its log, beside the account of dp-accounting."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flmarket_sim.errors import InputError
from flmarket_sim.eventlog import read_events, read_ledger, read_run
from flmarket_sim.privacy.accounting import composed_loss
from flmarket_sim.tables.cells import Row

TOLERANCE = 1e-9  # relative: sums of the same numbers in another order


@dataclass(frozen=True)
class Account:
    """The sales of one owner: `total` sums her releases, `composed` is epsilon at the delta.

    `total_delta` sums the deltas of her releases; 0: all of them are pure. `composed` is infinite
    where they leave nothing of the delta.
    """

    owner: int
    releases: int
    total: float
    composed: float
    total_delta: float = 0.0


@dataclass(frozen=True)
class LedgerReport:
    """The owners who sold most, and the owners whose ledger differs from the sum of their log.

    The run is `pure` if every gradient promised e, and not (e, delta).
    """

    delta: float
    sellers: int
    accounts: list[Account]
    wrong: list[int]
    checked: bool
    false_names: bool
    pure: bool = True

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def owners_of(run: str | os.PathLike[str]) -> int:
    try:
        owners = int(read_run(run)["scenario"]["owners"]["count"])
        if not 1 <= owners <= 10**8:
            raise ValueError
    except (KeyError, TypeError, ValueError, OverflowError):
        raise InputError(f"{run}/run.json does not say how many owners there are") from None
    return owners


@dataclass(frozen=True)
class Sales:
    """What one owner sold: losses and deltas of her releases in order, and the sum of all deltas.

    The names of one owner have disjoint records, so the largest of their losses in a round counts
    (docs/event-log.md). `all_deltas` is over every gradient of every name, as the ledger has it.
    """

    losses: list[float]
    deltas: list[float]
    all_deltas: float


def sales(run: str | os.PathLike[str]) -> dict[int, Sales]:
    """What each owner sold. Runs of former versions have no deltas: all of their sales are pure."""
    owners = owners_of(run)
    sent = read_events(run, "gradient")
    if "privacy_loss" not in sent.column_names or sent.column("privacy_loss").null_count:
        raise InputError(f"the gradients of {run} are damaged: not all of them say what they sold")
    names = ("sender", "round", "buyer", "privacy_loss")
    rows = [sent.column(name).to_pylist() for name in names]
    known = "delta" in sent.column_names
    deltas = (
        [one or 0.0 for one in sent.column("delta").to_pylist()] if known else [0.0] * len(sent)
    )
    sold: dict[tuple[int, int, str], tuple[float, float]] = {}
    summed: dict[int, float] = defaultdict(float)
    for sender, number, buyer, loss, delta in zip(*rows, deltas, strict=True):
        key = (sender % owners, number, buyer)
        before = sold.get(key, (0.0, 0.0))
        sold[key] = (max(before[0], loss), max(before[1], delta))
        summed[key[0]] += delta
    by_owner: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for (owner, _, _), pair in sold.items():
        by_owner[owner].append(pair)
    return {
        owner: Sales([loss for loss, _ in pairs], [delta for _, delta in pairs], summed[owner])
        for owner, pairs in by_owner.items()
    }


def releases(run: str | os.PathLike[str]) -> dict[int, list[float]]:
    """The privacy losses that each owner sold, in order."""
    return {owner: sold.losses for owner, sold in sales(run).items()}


def read(run: str | os.PathLike[str], delta: float, top: int) -> LedgerReport:
    """Composes the sales of the `top` sellers, and compares all sums with ledger.parquet."""
    info = read_run(run)
    if "view" in info:
        raise InputError(f"{run} is the view of {info['view']}; the ledger is of a whole run")
    sold = sales(run)
    totals = {owner: float(np.sum(one.losses)) for owner, one in sold.items()}
    checked = (Path(run) / "ledger.parquet").exists()
    wrong = _wrong_owners(run, sold, totals) if checked else []
    most = sorted(totals, key=lambda owner: (-totals[owner], owner))[:top]
    accounts = [_account(owner, sold[owner], delta) for owner in most]
    bids = read_events(run, "bid")
    several = "person" in bids.column_names and bids.column("person").null_count < len(bids)
    pure = not any(one.all_deltas for one in sold.values())
    return LedgerReport(delta, len(sold), accounts, wrong, checked, several, pure)


def _account(owner: int, sold: Sales, delta: float) -> Account:
    composed = composed_loss(sold.losses, delta, sold.deltas)
    total, total_delta = float(np.sum(sold.losses)), math.fsum(sold.deltas)
    return Account(owner, len(sold.losses), total, composed, total_delta)


def _wrong_owners(
    run: str | os.PathLike[str], sold: dict[int, Sales], totals: dict[int, float]
) -> list[int]:
    """The owners whose line in ledger.parquet is not the sum of what her gradients sold."""
    ledger = read_ledger(run)
    sums = {"privacy_sold": totals, "delta_sold": {o: s.all_deltas for o, s in sold.items()}}
    differs = np.zeros(owners_of(run), bool)
    for name, by_owner in sums.items():
        if name not in ledger.column_names or ledger.column(name).null_count == len(ledger):
            continue  # a run of a former version
        recorded, summed = ledger.column(name).to_numpy(), np.zeros(len(differs))
        if len(recorded) != len(summed):
            raise InputError(
                f"{Path(run) / 'ledger.parquet'} is damaged: it has {len(recorded)} owners, "
                f"not {len(summed)}"
            )
        summed[list(by_owner)] = list(by_owner.values())
        size = 1 + summed if name == "privacy_sold" else summed
        differs |= ~(np.abs(recorded - summed) <= TOLERANCE * size)
    return [int(owner) for owner in np.flatnonzero(differs)]


def rows(report: LedgerReport) -> list[Row]:
    """One row an owner; without a sum of delta where every promise is pure."""
    return [
        {"owner": account.owner, "gradients": account.releases, "sum_of_e": account.total}
        | ({} if report.pure else {"sum_of_delta": account.total_delta})
        | {f"e at delta {report.delta:g}": account.composed}
        for account in report.accounts
    ]


def shown_rows(report: LedgerReport) -> list[Row]:
    """The same with six digits, as the sums of a ledger are compared."""
    return [
        {
            name: value
            if isinstance(value, int)
            else f"{value:.6g}"
            if math.isfinite(value)
            else "none"
            for name, value in row.items()
        }
        for row in rows(report)
    ]


def meaning(report: LedgerReport) -> str:
    """What the table shows, and whether the ledger is right."""
    note = f"{report.sellers:,} owners sold; the {len(report.accounts)} who sold most are shown. "
    if report.wrong:
        first = ", ".join(map(str, report.wrong[:10]))
        note += f"The ledger is WRONG for {len(report.wrong)} owners: {first}. "
    elif report.checked:
        note += (
            "Everybody's line in ledger.parquet is the sum of what her gradients in the log sold. "
        )
    else:
        note += (
            "The run has no ledger.parquet to compare with: it has not finished, or the file is "
            "lost. "
        )
    if not report.pure:
        note += (
            "The promise of these gradients is (e, delta) and not e: with a chance of up to the "
            "sum of delta, an owner may lose more than the sum of e. "
        )
    if any(not math.isfinite(account.composed) for account in report.accounts):
        note += (
            f"Where it says 'none', the sum of delta is above {report.delta:g}, and no e holds at "
            "that delta; give a larger `delta`. "
        )
    note += (
        "The sum holds for all losses. The last column, by dp-accounting, holds for losses that do "
        "not depend on earlier gradients; the auctions and behaviours that come with flmarket_sim "
        "never see a gradient."
    )
    if report.false_names:
        note += (
            " Some owners used several names on disjoint records: their figures hold for any one "
            "record, not for all of an owner's records together."
        )
    return note
