"""A run as one participant sees it: her own events, of these what she can know, and nothing that gives the others away.

VIEW/
  run.json                 whose view, the public rules of the market, and for a buyer her own terms
  owners.parquet, ledger.parquet      of an owner: her own row
  events/kind=.../part-00000.parquet
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from flmarket_sim import valuation
from flmarket_sim.durable import disk_error
from flmarket_sim.errors import InputError
from flmarket_sim.eventlog.participants import Participant, parse_participant
from flmarket_sim.eventlog.reader import event_parts, read_run
from flmarket_sim.eventlog.schema import ENVELOPE, KINDS, Seen
from flmarket_sim.eventlog.visibility import BROKER, BUYER, OWNER, columns_of_receiver, columns_of_sender, seen_by
from flmarket_sim.folders import claim

PUBLIC = ("name", "rounds", "privacy")  # of a scenario
PUBLIC_RULES = ("bidders", "levels", "bid_deadline", "decision_deadline", "gradient_deadline")  # of its market
PUBLIC_TERMS = ("auction", "aggregation")  # of a buyer
OWN_TERMS = ("budget", "model")


def write_view(run: str | Path, who: str, out: str | Path) -> dict[str, Any]:
    """Writes the view of `who` on the run into the new or empty directory `out`. Returns what its run.json says."""
    run, out = Path(run), Path(out)
    info = read_run(run)
    if "view" in info:
        raise InputError(f"{run} is itself a view, of {info['view']}; a view is made of a whole run")
    try:
        scenario = info["scenario"]
        buyers = [buyer["name"] for buyer in scenario["buyers"]] or ["buyer"]
        viewer = parse_participant(who, buyers, scenario["owners"]["count"])
        told = {
            "schema": info["schema"],
            "view": who,
            "outcome": info["outcome"],
            "repeatable": info.get("repeatable", True),
            "scenario": public_scenario(scenario, viewer),
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{run / 'run.json'} does not describe a run: {type(error).__name__}: {error}") from None
    claim(out, "view")
    try:
        place, names = _first_look(run, viewer, str(info.get("log")))
        levels = scenario["market"]["levels"]
        kinds = {kind: _write_kind(run, out, kind, viewer, place, names, levels) for kind in KINDS}
        if viewer.role == OWNER:
            for table in ("owners.parquet", "ledger.parquet"):
                if (run / table).exists():
                    pq.write_table(_own_row(run / table, viewer.number), out / table, compression="zstd")
        told["log"] = {"events": sum(kinds.values()), "kinds": {kind: {"rows": rows} for kind, rows in kinds.items()}}
        (out / "run.json").write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
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
        own = viewer.role == BUYER and viewer.number == -2 - number
        terms = (*PUBLIC_TERMS, *OWN_TERMS) if own else PUBLIC_TERMS
        buyers.append({"name": buyer["name"]} | {term: buyer.get(term) or scenario[term] for term in terms})
    rules = {key: scenario["market"][key] for key in PUBLIC_RULES}
    return {key: scenario[key] for key in PUBLIC} | {"market": rules, "buyers": buyers}


def _first_look(run: Path, viewer: Participant, secret: str) -> tuple[NDArray[np.uint64], dict[int, int]]:
    """New places of the events that she sees (what happens between them is not hers to count), by old places; and new
    numbers of owners, in an order that `secret` makes, for a broker who must not read from a number that it is a false name."""
    seen: list[NDArray[np.uint64]] = []
    names: set[int] = set()
    for kind in KINDS:
        for table in _groups(run, kind, ["seq", "sender", "receiver"]):
            hers = _hers(table, kind, viewer)[0]
            seen.append(table.column("seq").to_numpy()[hers])
            if viewer.role == BROKER:
                for column in ("sender", "receiver"):
                    names.update(np.unique(table.column(column).to_numpy()).tolist())
    last = max((int(part.max()) for part in seen if len(part)), default=0)
    visible = np.zeros(last + 1, np.bool_)
    for part in seen:
        visible[part] = True
    place = np.cumsum(visible, dtype=np.uint64)
    owners = [name for name in names if name >= 0]
    if max(owners, default=0) < viewer.owners:
        return place, {}
    mixed = sorted(owners, key=lambda name: hashlib.sha256(f"{secret}{name}".encode()).digest())
    return place, {name: number for number, name in enumerate(mixed)}


def _hers(table: pa.Table, kind: str, viewer: Participant) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows she sees, and which of them she sent."""
    sent = viewer.is_in(table.column("sender").to_numpy()) & bool(columns_of_sender(kind))
    got = viewer.is_in(table.column("receiver").to_numpy()) & bool(columns_of_receiver(kind))
    return sent | got, sent


def _groups(run: Path, kind: str, columns: list[str] | None = None) -> Iterator[pa.Table]:
    """The events of a kind, a row group at a time: a log can be larger than memory."""
    for part in event_parts(run, kind):
        try:
            file = pq.ParquetFile(part)
            if missing := {column.name for column in ENVELOPE} - set(file.schema_arrow.names):
                raise InputError(f"{part} is no part of an event log: it has no {', '.join(sorted(missing))}")
            for group in range(file.num_row_groups):
                yield file.read_row_group(group, columns)
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{part} cannot be read: {error}") from None


def _write_kind(
    run: Path, out: Path, kind: str, viewer: Participant, place: NDArray[np.uint64], names: dict[int, int], levels: int
) -> int:
    """One file with what she sees of a kind; none if that is nothing. Returns the number of events."""
    rows, writer = 0, None
    try:
        for table in _groups(run, kind):
            hers, sent = _hers(table, kind, viewer)
            if hers.any():
                seen = _visible(table.filter(pa.array(hers)), kind, viewer, sent[hers], place, names, levels)
                if writer is None:
                    folder = out / "events" / f"kind={kind}"
                    folder.mkdir(parents=True)
                    writer = pq.ParquetWriter(folder / "part-00000.parquet", seen.schema, compression="zstd")
                writer.write_table(seen)
                rows += seen.num_rows
    finally:
        if writer is not None:
            writer.close()
    return rows


def _visible(
    table: pa.Table, kind: str, viewer: Participant, sent: NDArray[np.bool_], place: NDArray[np.uint64],
    names: dict[int, int], levels: int,
) -> pa.Table:  # fmt: skip
    """Rows of hers without the columns that her role never sees, and with nulls where this row is not hers to see."""
    kept: dict[str, pa.Array] = {}
    for column in (*ENVELOPE, *KINDS[kind]):
        if column.name not in table.column_names or (column in KINDS[kind] and viewer.role not in seen_by(kind, column)):
            continue
        values = table.column(column.name)
        if column.name == "seq":
            values = pa.array(place[values.to_numpy()])
        elif column.name in ("sender", "receiver") and names:
            values = pa.array([names.get(number, number) for number in values.to_pylist()], values.type)
        elif (kind, column.name) == ("bid", "values") and viewer.role == BROKER:
            values = spelled_out(table, levels)
        if pa.types.is_dictionary(values.type):  # a file's dictionary would list names that none of her rows has
            values = values.cast(values.type.value_type).dictionary_encode().cast(values.type)
        if column.seen is Seen.SENDER and not sent.all():
            values = pc.if_else(pa.array(sent), values, pa.scalar(None, values.type))
        kept[column.name] = values
    return pa.table(kept)


def spelled_out(bids: pa.Table, levels: int) -> pa.Array:
    """The money asked at each level: what a bid has in it. The log says it by family and rate where these say the same."""
    values = bids.column("values").to_pylist()
    short = np.array([row is None for row in values])
    if short.any():
        chosen = bids.filter(pa.array(short))
        codes = valuation.family_codes(np.array(chosen.column("family").to_pylist()))[:, None]
        rate, budget, size = (
            chosen.column(name).to_numpy().astype(float)[:, None] for name in ("rate", "privacy_budget", "data_size")
        )
        asked = valuation.value(codes, rate, size, budget * (np.arange(1, levels + 1) / levels), rate * size * budget)
        for row, found in zip(np.flatnonzero(short).tolist(), asked.tolist(), strict=True):
            values[row] = found
    return pa.array(values, pa.list_(pa.float64()))


def _own_row(path: Path, owner: int) -> pa.Table:
    table = pq.ParquetFile(path).read().slice(owner, 1)
    for number, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            values = table.column(number).cast(field.type.value_type).dictionary_encode().cast(field.type)
            table = table.set_column(number, field, values)
    return table
