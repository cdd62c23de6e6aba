"""An owner's own view of a run: the events in her ledger, in the schema of every log.

It has what nobody else knows: her valuation, why she declined, the norm of her gradient. In it she
is owner 0; a broker's numbers are his affair.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from flmarket_sim.errors import InputError
from flmarket_sim.eventlog.run_files import hashes_of
from flmarket_sim.eventlog.run_info import FILES
from flmarket_sim.eventlog.schema import BROKER, ENVELOPE, SCHEMA_VERSION, arrow_schema, columns
from flmarket_sim.flower.own_ledger import FILE, OwnLedger
from flmarket_sim.storage.atomic_files import write_parquet, write_text
from flmarket_sim.storage.result_folders import claim, give_up
from flmarket_sim.storage.sealed_files import sealed

HERSELF = 0


def write_own_view(folder: Path, out: Path, run: str | None = None) -> dict[str, Any]:
    """Writes the view of the owner whose folder this is; by default of her latest run. Returns its
    run.json."""
    if not (folder / FILE).is_file():
        raise InputError(f"{folder} has no ledger of an owner ({FILE})")
    ledger = OwnLedger(folder, None)
    try:
        runs = ledger.runs()
        if run is not None and run not in runs:
            raise InputError(f"{folder} has no run {run!r}; it has {', '.join(runs) or 'none'}")
        if not runs:
            raise InputError(f"the owner of {folder} has not taken part in a run yet")
        events = ledger.events(run or runs[-1])
    finally:
        ledger.close()
    claim(out, "view")
    try:
        return _write(events, out, run or runs[-1])
    finally:
        give_up(out)


Event = tuple[int, int, float, str, bool, dict[str, Any]]


def _write(events: list[Event], out: Path, run: str) -> dict[str, Any]:
    buyers = tuple(f"buyer-{number}" for number in range(1 + max(event[0] for event in events)))
    began = events[0][2]
    rows: dict[str, list[dict[str, Any]]] = {}
    for number, (buyer, round_, time, kind, sent, cells) in enumerate(events, 1):
        ends = (HERSELF, BROKER) if sent else (BROKER, HERSELF)
        row = dict(
            zip(
                [column.name for column in ENVELOPE],
                (number, time - began, round_, buyer, *ends),
                strict=True,
            )
        )
        rows.setdefault(kind, []).append(row | cells)
    for kind, found in rows.items():
        path = out / "events" / f"kind={kind}" / "part-00000.parquet"
        path.parent.mkdir(parents=True)
        write_parquet(path, _table(kind, found, buyers))
    info: dict[str, Any] = {
        "schema": SCHEMA_VERSION,
        "view": f"owner:{HERSELF}",
        "of": run,
        "outcome": "finished",
        "repeatable": False,
        "scenario": {
            "rounds": 1 + max(event[1] for event in events),
            "buyers": [{"name": name} for name in buyers],
        },
        "log": {
            "events": len(events),
            "kinds": {kind: {"rows": len(found)} for kind, found in rows.items()},
        },
        FILES: hashes_of(out, out.rglob("*.parquet")),
    }
    info = sealed(info)
    write_text(out / "run.json", json.dumps(info, indent=2, ensure_ascii=False) + "\n")
    return info


def _table(kind: str, rows: list[dict[str, Any]], buyers: tuple[str, ...]) -> pa.Table:
    """Events of one kind; columns that she does not know are null."""
    schema, made = arrow_schema(kind, buyers), {}
    for column in columns(kind, buyers):
        cells = [row.get(column.name) for row in rows]
        if column.names is None:
            made[column.name] = pa.array(cells, column.type)
            continue
        names = [column.names[cell] if isinstance(cell, int) else cell for cell in cells]
        known = sorted({name for name in names if name is not None})
        codes = [None if name is None else known.index(name) for name in names]
        made[column.name] = pa.DictionaryArray.from_arrays(
            pa.array(codes, column.type), pa.array(known, pa.string())
        )
    return pa.table(made, schema=schema)
