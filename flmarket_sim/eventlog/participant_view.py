"""A run as one participant sees it: her own events, of these what she can know, and nothing that gives the others away.

VIEW/
  run.json                 whose view, the public rules of the market, and for a buyer her own terms
  owners.parquet, ledger.parquet      of an owner: her own row
  events/kind=.../part-00000.parquet
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from flmarket_sim.errors import InputError, shown
from flmarket_sim.eventlog.participants import Participant, parse_participant
from flmarket_sim.eventlog.reader import event_files, read_part, read_run
from flmarket_sim.eventlog.record import Role, Seen
from flmarket_sim.eventlog.schema import ENVELOPE, KINDS
from flmarket_sim.eventlog.visibility import columns_of_receiver, columns_of_sender, seen_by
from flmarket_sim.owners import valuation
from flmarket_sim.owners.owner_types import OwnerTypes
from flmarket_sim.storage.atomic_files import disk_error, write_parquet, write_text
from flmarket_sim.storage.result_folders import claim
from flmarket_sim.storage.untrusted_files import read_parquet, require_columns

PUBLIC = ("name", "rounds", "privacy")  # of a scenario
PUBLIC_RULES = (
    "bidders",
    "levels",
    "bid_deadline",
    "decision_deadline",
    "gradient_deadline",
)  # of its market
PUBLIC_TERMS = ("auction", "aggregation")  # of a buyer
OWN_TERMS = ("budget", "model")
NEEDED = ("family", "rate", "privacy_budget", "data_size", "values")  # to say what a bid asked for
Files = dict[str, tuple[list[Path], pa.Table | None]]


def write_view(run: str | os.PathLike[str], who: str, out: str | Path) -> dict[str, Any]:
    """Writes the view of `who` on the run into the new or empty directory `out`. Returns what its run.json says."""
    run, out = Path(run), Path(out)
    info = read_run(run)
    if "view" in info:
        raise InputError(
            f"{run} is itself a view, of {info['view']}; a view is made of a whole run"
        )
    try:
        scenario = info["scenario"]
        buyers = [buyer["name"] for buyer in scenario["buyers"]] or ["buyer"]
        viewer = parse_participant(who, buyers, scenario["owners"]["count"])
        levels = scenario["market"]["levels"]
        if not isinstance(levels, int) or not 1 <= levels <= 1000 or viewer.owners < 1:
            raise TypeError(f"market.levels is {shown(levels)}")
        told = {
            "schema": info["schema"],
            "view": who,
            "outcome": info["outcome"],
            "repeatable": info.get("repeatable", True),
            "scenario": public_scenario(scenario, viewer),
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{run / 'run.json'} does not describe a run: {type(error).__name__}: {error}"
        ) from None
    claim(out, "view")
    try:
        files = event_files(run, list(KINDS))  # of one moment, also where the run goes on meanwhile
        sha256 = (
            log.get("sha256") if isinstance(log := info.get("log"), dict) else None
        )  # nobody in the market knows it
        place, names = _first_look(
            files, viewer, os.urandom(16) if sha256 is None else str(sha256).encode()
        )
        kinds = {
            kind: _write_kind(files, out, kind, viewer, place, names, levels) for kind in KINDS
        }
        if viewer.role == Role.OWNER:
            for table in ("owners.parquet", "ledger.parquet"):
                if (run / table).exists():
                    write_parquet(out / table, _own_row(run / table, viewer.number))
        told["log"] = {
            "events": sum(kinds.values()),
            "kinds": {kind: {"rows": rows} for kind, rows in kinds.items()},
        }
        write_text(out / "run.json", json.dumps(told, indent=2, ensure_ascii=False) + "\n")
    except OSError as error:
        raise disk_error(out, error) from error
    return told


def public_scenario(scenario: dict[str, Any], viewer: Participant) -> dict[str, Any]:
    """The rules that everybody knows, and a buyer's own terms.

    No seed and no hash of the scenario (trying seeds until the hash fits gives the seed): a seed makes the whole market again. Nor
    what the experimenter knows of the owners and their records.
    """
    buyers = []
    for number, buyer in enumerate(scenario["buyers"] or [{"name": "buyer"}]):
        own = viewer.role == Role.BUYER and viewer.number == -2 - number
        terms = (*PUBLIC_TERMS, *OWN_TERMS) if own else PUBLIC_TERMS
        buyers.append(
            {"name": buyer["name"]} | {term: buyer.get(term) or scenario[term] for term in terms}
        )
    rules = {key: scenario["market"][key] for key in PUBLIC_RULES}
    return {key: scenario[key] for key in PUBLIC} | {"market": rules, "buyers": buyers}


def _first_look(files: Files, viewer: Participant, secret: bytes) -> tuple[Places, dict[int, int]]:
    """New places of the events that she sees (what happens between them is not hers to count), and new numbers of owners.

    A broker must not read from a number that it is a false name, so owners get numbers in an order that `secret` makes; nor from its
    place, so what is said to several or by several at one moment is in the order of these numbers.
    """
    seq, time, kinds, owner = [], [], [], []
    names: set[int] = set()
    for number, kind in enumerate(KINDS):
        for table in _groups(files, kind):
            hers = _hers(table, kind, viewer)[0]
            seq.append(table.column("seq").to_numpy()[hers])
            if viewer.role == Role.BROKER:
                sender, receiver = (
                    table.column(name).to_numpy() for name in ("sender", "receiver")
                )
                time.append(table.column("time").to_numpy()[hers])
                kinds.append(np.full(int(hers.sum()), number))
                owner.append(np.maximum(sender, receiver)[hers])
                names.update(np.unique(np.concatenate([sender, receiver])).tolist())
    old = np.concatenate(seq) if seq else np.zeros(0, np.uint64)
    order = np.argsort(old, kind="stable")
    owners = [name for name in names if name >= 0]
    if max(owners, default=0) < viewer.owners:
        return Places(old[order], np.arange(1, len(order) + 1, dtype=np.uint64)), {}
    mixed = sorted(owners, key=lambda name: hashlib.sha256(secret + str(name).encode()).digest())
    renamed = {name: number for number, name in enumerate(mixed)}
    told, moment, who = (np.concatenate(part)[order] for part in (kinds, time, owner))
    group = np.cumsum(np.r_[False, (told[1:] != told[:-1]) | (moment[1:] != moment[:-1])])
    shown_as = np.array([renamed.get(number, number) for number in who.tolist()])
    mixed_order = np.lexsort((shown_as, group))
    place = np.empty(len(order), np.uint64)
    place[mixed_order] = np.arange(1, len(order) + 1, dtype=np.uint64)
    return Places(old[order], place), renamed


class Places(NamedTuple):
    """Places of events in the log, ascending, and in a view."""

    old: NDArray[np.uint64]
    new: NDArray[np.uint64]

    def of(self, old: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return self.new[np.searchsorted(self.old, old)]


def _hers(
    table: pa.Table, kind: str, viewer: Participant
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows she sees, and which of them she sent."""
    sent = viewer.is_in(table.column("sender").to_numpy()) & bool(columns_of_sender(kind))
    got = viewer.is_in(table.column("receiver").to_numpy()) & bool(columns_of_receiver(kind))
    return sent | got, sent


def _groups(files: Files, kind: str) -> Iterator[pa.Table]:
    """The events of a kind, a part at a time: a log can be larger than memory. What is in a journal comes last."""
    parts, later = files[kind]
    for part in parts:
        table = read_part(part, kind)
        require_columns(
            part, table, [column.name for column in KINDS[kind] if column.name in NEEDED]
        )
        yield table
    if later is not None:
        yield later


def _write_kind(
    files: Files,
    out: Path,
    kind: str,
    viewer: Participant,
    place: Places,
    names: dict[int, int],
    levels: int,
) -> int:
    """One file with what she sees of a kind; none if that is nothing. Returns the number of events."""
    rows, writer = 0, None
    try:
        for table in _groups(files, kind):
            hers, sent = _hers(table, kind, viewer)
            if hers.any():
                seen = _visible(
                    table.filter(pa.array(hers)), kind, viewer, sent[hers], place, names, levels
                )
                if writer is None:
                    folder = out / "events" / f"kind={kind}"
                    folder.mkdir(parents=True)
                    writer = pq.ParquetWriter(
                        folder / "part-00000.parquet", seen.schema, compression="zstd"
                    )
                writer.write_table(seen)
                rows += seen.num_rows
    finally:
        if writer is not None:
            writer.close()
    return rows


def _visible(
    table: pa.Table, kind: str, viewer: Participant, sent: NDArray[np.bool_], place: Places,
    names: dict[int, int], levels: int,
) -> pa.Table:  # fmt: skip
    """Rows of hers without the columns that her role never sees, and with nulls where this row is not hers to see."""
    kept: dict[str, pa.Array] = {}
    for column in (*ENVELOPE, *KINDS[kind]):
        if column.name not in table.column_names or (
            column in KINDS[kind] and viewer.role not in seen_by(kind, column)
        ):
            continue
        values = table.column(column.name)
        if column.name == "seq":
            values = pa.array(place.of(values.to_numpy()))
        elif column.name in ("sender", "receiver") and names:
            values = pa.array(
                [names.get(number, number) for number in values.to_pylist()], values.type
            )
        elif (kind, column.name) == ("bid", "values") and viewer.role == Role.BROKER:
            values = spelled_out(table, levels)
        if pa.types.is_dictionary(
            values.type
        ):  # a file's dictionary would list names that none of her rows has
            values = values.cast(values.type.value_type).dictionary_encode().cast(values.type)
        if column.seen is Seen.SENDER and not sent.all():
            values = pc.if_else(pa.array(sent), values, pa.scalar(None, values.type))
        kept[column.name] = values
    return pa.table(kept).sort_by("seq")


def spelled_out(bids: pa.Table, levels: int) -> pa.Array:
    """The money asked at each level: what a bid has in it. The log says it by family and rate where these say the same."""
    values = bids.column("values").to_pylist()
    short = np.array([row is None for row in values])
    if short.any():
        chosen = bids.filter(pa.array(short))
        codes = valuation.family_codes(np.array(chosen.column("family").to_pylist()))
        rate, budget, size = (
            chosen.column(name).to_numpy().astype(float)
            for name in ("rate", "privacy_budget", "data_size")
        )
        asked = OwnerTypes(codes, rate, budget, size).table(levels)
        for row, found in zip(np.flatnonzero(short).tolist(), asked.tolist(), strict=True):
            values[row] = found
    return pa.array(values, pa.list_(pa.float64()))


def _own_row(path: Path, owner: int) -> pa.Table:
    table = read_parquet(path).slice(owner, 1)
    for number, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            values = (
                table.column(number)
                .cast(field.type.value_type)
                .dictionary_encode()
                .cast(field.type)
            )
            table = table.set_column(number, field, values)
    return table
