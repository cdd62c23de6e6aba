"""A run as one participant sees it: her own events, and of these only what she can know.

VIEW/
  run.json                 whose view, the public rules of the market, and for a buyer her own terms
  owners.parquet, ledger.parquet      of an owner: her own row
  events/kind=.../part-00000.parquet
  models/...               the kept models that she was sent, and a buyer's own
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from flmarket_sim.errors import InputError, shown
from flmarket_sim.eventlog.model_files import FOLDER
from flmarket_sim.eventlog.participants import Participant, parse_participant
from flmarket_sim.eventlog.reader import event_files, read_part, read_run
from flmarket_sim.eventlog.record import Role, Seen
from flmarket_sim.eventlog.run_files import check_files, hashes_of
from flmarket_sim.eventlog.run_info import FILES
from flmarket_sim.eventlog.schema import ENVELOPE, KINDS
from flmarket_sim.eventlog.tables import TABLES, columns_of_owner, table_schema
from flmarket_sim.eventlog.view_models import write_models
from flmarket_sim.eventlog.view_numbers import (
    Places,
    SeenEvents,
    new_numbers,
    new_places,
    renumbered,
    view_key,
)
from flmarket_sim.eventlog.visibility import (
    PARAMETERS_COME_WITH,
    columns_of_receiver,
    columns_of_sender,
    seen_by,
)
from flmarket_sim.owners import valuation
from flmarket_sim.owners.owner_types import OwnerTypes
from flmarket_sim.storage.atomic_files import disk_error, write_parquet, write_text
from flmarket_sim.storage.result_folders import claim, give_up
from flmarket_sim.storage.sealed_files import sealed
from flmarket_sim.storage.untrusted_files import read_parquet, require_columns

PUBLIC = ("rounds", "privacy")  # parts of a scenario that all participants know
PUBLIC_RULES = (
    "bidders",
    "levels",
    "bid_deadline",
    "decision_deadline",
    "gradient_deadline",
)  # of its market
PUBLIC_TERMS = ("auction", "aggregation")  # of a buyer
OWN_TERMS = ("model",)
NEEDED = ("family", "rate", "privacy_budget", "data_size", "values")  # for the values of bids
Files = dict[str, tuple[list[Path], pa.Table | None]]


def write_view(run: str | os.PathLike[str], who: str, out: str | Path) -> dict[str, Any]:
    """Writes the view of participant `who` to a new or empty directory. Returns its run.json."""
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
        if not isinstance(levels, int) or not 1 <= levels <= 1000:
            raise TypeError(f"market.levels is {shown(levels)}")
        if not 1 <= viewer.owners < 2**31:
            raise TypeError(f"owners.count is {shown(viewer.owners)}")
        view_info = {
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
    key = view_key(run, info)
    claim(out, "view")
    try:
        files = event_files(run, list(KINDS))  # a snapshot, in case the run is going on
        for parts, _ in files.values():
            check_files(run, info, parts)
        place, names = _first_look(files, viewer, key)
        kinds = {
            kind: _write_kind(files, out, kind, viewer, place, names, levels) for kind in KINDS
        }
        if viewer.role == Role.OWNER:
            for table in TABLES:
                check_files(run, info, [path := run / f"{table}.parquet"])
                if path.exists():
                    write_parquet(out / path.name, _own_row(path, table, viewer.number))
        view_info["log"] = {
            "events": sum(kinds.values()),
            "kinds": {kind: {"rows": rows} for kind, rows in kinds.items()},
        }
        if (run / FOLDER).is_dir():
            arrived = PARAMETERS_COME_WITH.get(viewer.role)
            tables = [] if arrived is None else _groups(files, arrived)
            if models := write_models(run, out, viewer, tables):
                view_info["models"] = models
        view_info[FILES] = hashes_of(out, out.rglob("*.parquet"))
        view_info = sealed(view_info)
        write_text(out / "run.json", json.dumps(view_info, indent=2, ensure_ascii=False) + "\n")
    except OSError as error:
        raise disk_error(out, error) from error
    finally:
        give_up(out)
    return view_info


def public_scenario(scenario: dict[str, Any], viewer: Participant) -> dict[str, Any]:
    """The rules that all participants know, and a buyer's own terms.

    There is no seed, because the seed gives the whole market; and no hash of the scenario, because
    the hash gives the seed by trial. What the experimenter knows of owners and records is left out
    too, and so is the name of the scenario, by which one finds all that in its file. A buyer knows
    her money, and not that it is a factor times what her bidders' privacy is truly worth.
    """
    buyers = []
    for number, buyer in enumerate(scenario["buyers"] or [{"name": "buyer"}]):
        own = viewer.role == Role.BUYER and viewer.number == -2 - number
        terms = (*PUBLIC_TERMS, *OWN_TERMS) if own else PUBLIC_TERMS
        shown = {term: buyer.get(term) or scenario[term] for term in terms}
        amount = (buyer.get("budget") or scenario["budget"]).get("amount")
        if own and amount is not None:
            shown["budget"] = {"amount": amount}
        buyers.append({"name": buyer["name"]} | shown)
    rules = {key: scenario["market"][key] for key in PUBLIC_RULES}
    return {key: scenario[key] for key in PUBLIC} | {"market": rules, "buyers": buyers}


def _first_look(files: Files, viewer: Participant, key: bytes) -> tuple[Places, dict[int, int]]:
    """New places of the events that a participant sees, and new numbers of owners."""
    columns: list[SeenEvents] = []
    for number, kind in enumerate(KINDS):
        for table in _groups(files, kind):
            visible = _visible_rows(table, kind, viewer)[0]
            seq, time, rounds, sender, receiver = (
                table.column(name).to_numpy()[visible]
                for name in ("seq", "time", "round", "sender", "receiver")
            )
            kinds = np.full(len(seq), number)
            columns.append(SeenEvents(seq, time, rounds, kinds, sender, receiver))
    if not columns:
        return Places(np.zeros(0, np.uint64), np.zeros(0, np.uint64)), {}
    seen = SeenEvents(*(np.concatenate(parts) for parts in zip(*columns, strict=True)))
    names = set(np.unique(np.concatenate([seen.sender, seen.receiver])).tolist())
    numbers = new_numbers(names, viewer, key)
    return new_places(seen, numbers), numbers


def _visible_rows(
    table: pa.Table, kind: str, viewer: Participant
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows the viewer sees, and which of them she sent."""
    sent = viewer.is_in(table.column("sender").to_numpy()) & bool(columns_of_sender(kind))
    got = viewer.is_in(table.column("receiver").to_numpy()) & bool(columns_of_receiver(kind))
    return sent | got, sent


def _groups(files: Files, kind: str) -> Iterator[pa.Table]:
    """The events of a kind, part by part because a log can be larger than memory; journal last."""
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
    """Writes a file with the events of a kind that the viewer sees. Returns their number."""
    rows, writer = 0, None
    try:
        for table in _groups(files, kind):
            visible, sent = _visible_rows(table, kind, viewer)
            if visible.any():
                seen = _visible_columns(
                    table.filter(pa.array(visible)),
                    kind,
                    viewer,
                    sent[visible],
                    place,
                    names,
                    levels,
                )
                if writer is None:
                    folder = out / "events" / f"kind={kind}"
                    folder.mkdir(parents=True)
                    writer = pq.ParquetWriter(
                        folder / "part-00000.parquet",
                        seen.schema,
                        compression="zstd",
                        write_page_checksum=True,
                    )
                writer.write_table(seen)
                rows += seen.num_rows
    finally:
        if writer is not None:
            writer.close()
    return rows


def _visible_columns(
    table: pa.Table, kind: str, viewer: Participant, sent: NDArray[np.bool_], place: Places,
    names: dict[int, int], levels: int,
) -> pa.Table:  # fmt: skip
    """The viewer's rows, without columns that her role never sees, and with nulls in columns that
    only the sender sees."""
    columns: dict[str, pa.Array] = {}
    for column in (*ENVELOPE, *KINDS[kind]):
        if column.name not in table.column_names or (
            column in KINDS[kind] and viewer.role not in seen_by(kind, column)
        ):
            continue
        values = table.column(column.name)
        if column.name == "seq":
            values = pa.array(place.of(values.to_numpy()))
        elif column.name in ("sender", "receiver") and names:
            values = pa.array(renumbered(values.to_numpy(), names), values.type)
        elif (kind, column.name) == ("bid", "values") and viewer.role == Role.BROKER:
            values = spelled_out(table, levels)
        if pa.types.is_dictionary(values.type):  # keep only the names in these rows
            values = values.cast(values.type.value_type).dictionary_encode().cast(values.type)
        if column.seen is Seen.SENDER and not sent.all():
            values = pc.if_else(pa.array(sent), values, pa.scalar(None, values.type))
        columns[column.name] = values
    return pa.table(columns).sort_by("seq")


def spelled_out(bids: pa.Table, levels: int) -> pa.Array:
    """The money asked at each level of each bid. The log has only family and rate where these
    determine it."""
    values = bids.column("values").to_pylist()
    short = np.array([row is None for row in values])
    if short.any():
        chosen = bids.filter(pa.array(short))
        codes = valuation.family_codes(np.array(chosen.column("family").to_pylist()))
        rate, budget, size = (
            chosen.column(name).to_numpy().astype(float)
            for name in ("rate", "privacy_budget", "data_size")
        )
        full = OwnerTypes(codes, rate, budget, size).table(levels)
        for row, levels_of_bid in zip(np.flatnonzero(short).tolist(), full.tolist(), strict=True):
            values[row] = levels_of_bid
    return pa.array(values, pa.list_(pa.float64()))


def _own_row(path: Path, name: str, owner: int) -> pa.Table:
    """The row of an owner in the table of that name, with the columns that she sees."""
    table = read_parquet(path, table_schema(name), known_only=True)
    seen = [column for column in columns_of_owner(name) if column in table.column_names]
    table = table.select(seen).slice(owner, 1)
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
