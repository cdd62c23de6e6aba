"""The privacy ledger of a run, recomputed from its log, beside the account of dp-accounting."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from flmarket_sim.errors import InputError
from flmarket_sim.eventlog import read_events, read_ledger, read_run
from flmarket_sim.privacy.accounting import composed_loss

TOLERANCE = 1e-9  # relative: sums of the same numbers in another order


@dataclass(frozen=True)
class Account:
    """The sales of one owner: `total` sums her releases, `composed` is epsilon at the delta."""

    owner: int
    releases: int
    total: float
    composed: float


@dataclass(frozen=True)
class LedgerReport:
    """The owners who sold most, and the owners whose ledger differs from the sum of their log."""

    delta: float
    sellers: int
    accounts: list[Account]
    wrong: list[int]
    checked: bool
    false_names: bool

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


def releases(run: str | os.PathLike[str]) -> dict[int, list[float]]:
    """The privacy losses that each owner sold, in order.

    The names of one owner have disjoint records, so the largest of their losses in a round counts
    (docs/event-log.md).
    """
    owners = owners_of(run)
    sent = read_events(run, "gradient")
    if "privacy_loss" not in sent.column_names or sent.column("privacy_loss").null_count:
        raise InputError(f"the gradients of {run} are damaged: not all of them say what they sold")
    sales: dict[tuple[int, int, str], float] = {}
    rows = (sent.column(name).to_pylist() for name in ("sender", "round", "buyer", "privacy_loss"))
    for sender, number, buyer, loss in zip(*rows, strict=True):
        key = (sender % owners, number, buyer)
        sales[key] = max(sales.get(key, 0.0), loss)
    by_owner: dict[int, list[float]] = defaultdict(list)
    for (owner, _, _), loss in sales.items():
        by_owner[owner].append(loss)
    return dict(by_owner)


def read(run: str | os.PathLike[str], delta: float, top: int) -> LedgerReport:
    """Composes the sales of the `top` sellers, and compares all sums with ledger.parquet."""
    info = read_run(run)
    if "view" in info:
        raise InputError(f"{run} is the view of {info['view']}; the ledger is of a whole run")
    sold = releases(run)
    totals = {owner: float(np.sum(losses)) for owner, losses in sold.items()}
    wrong: list[int] = []
    checked = (Path(run) / "ledger.parquet").exists()
    if checked:
        ledger = read_ledger(run)
        recorded = ledger.column("privacy_sold").to_numpy()
        summed = np.zeros(owners_of(run))
        if len(recorded) != len(summed):
            raise InputError(
                f"{Path(run) / 'ledger.parquet'} is damaged: it has {len(recorded)} owners, "
                f"not {len(summed)}"
            )
        for owner, total in totals.items():
            summed[owner] = total
        wrong = np.flatnonzero(~(np.abs(recorded - summed) <= TOLERANCE * (1 + summed))).tolist()
    most = sorted(totals, key=lambda owner: (-totals[owner], owner))[:top]
    accounts = [Account(o, len(sold[o]), totals[o], composed_loss(sold[o], delta)) for o in most]
    bids = read_events(run, "bid")
    several = "person" in bids.column_names and bids.column("person").null_count < len(bids)
    return LedgerReport(delta, len(sold), accounts, wrong, checked, several)


def render(report: LedgerReport) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("owner", "gradients", "ledger: sum of e", f"e at delta {report.delta:g}"):
        table.add_column(head, justify="right")
    for account in report.accounts:
        table.add_row(
            str(account.owner),
            str(account.releases),
            f"{account.total:.6g}",
            f"{account.composed:.6g}",
        )
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
    return Group(table, Text(note))
