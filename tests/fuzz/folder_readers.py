"""Directories of runs and sweeps and files of probes, whole and with one file damaged."""

from __future__ import annotations

import io
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import flmarket_sim as fm
from flmarket_sim.eventlog import write_view
from flmarket_sim.eventlog.schema import KINDS
from flmarket_sim.owners.population import draw_markets
from flmarket_sim.report import privacy_ledger
from flmarket_sim.report.html import page, plotly_library
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.strategy.probe_file import read_probe, write_probe
from flmarket_sim.sweep.sweep_folder import finished_runs
from flmarket_sim.sweep.sweep_plan import parse_sweep
from flmarket_sim.sweep.sweep_runs import run_sweep

from .mutations import NUMBERS, mutate_bytes, mutate_tree

SMALL = {
    "rounds": 2,
    "data": {"name": "synthetic", "records": 400},
    "owners": {
        "count": 20,
        "behaviours": [{"name": "scale", "factor": 1.5, "share": 0.5}],
        "dropout": 0.2,
        "availability": 0.8,
    },
    "market": {"bidders": 5, "levels": 3, "counterfactual": True},
    "model": {"name": "none"},
    "buyers": [{"name": "a"}, {"name": "b", "auction": {"name": "pay-as-bid"}}],
}
SWEEP = 'rounds = 2\nmodel.name = "none"\nowners.count = 20\n[sweep]\nseeds = 2\n[sweep.grid]\nauction.name = ["all-in", "fair-query"]\n'


class FolderReader:
    """An input is the name of a file of the directory, a line's end, and what that file holds."""

    suffix = ".damage"

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "a directory é"
        self.fill()
        paths = sorted(path for path in self.folder.rglob("*") if path.is_file())
        self.whole = {str(path.relative_to(self.folder)): path.read_bytes() for path in paths}
        self.damaged: Path | None = None

    def fill(self) -> None:
        raise NotImplementedError

    def make(self, rng: random.Random) -> bytes:
        name = rng.choice(list(self.whole))
        content = damaged(name, self.whole[name], rng, list(self.whole.values()))
        return name.encode() + b"\n" + content

    def read(self, data: bytes) -> None:
        name, _, content = data.partition(b"\n")
        path = self.folder / name.decode()
        try:
            path.write_bytes(content)
            self.look(path.relative_to(self.folder))
        finally:
            path.write_bytes(self.whole[name.decode()])

    def look(self, damaged: Path) -> None:
        raise NotImplementedError


class LogReader(FolderReader):
    """read_run, read_owners, read_ledger, read_events, sql, the view of a participant and the ledger of privacy."""

    name = "log"

    def fill(self) -> None:
        fm.run(build_scenario(SMALL), self.folder)

    def look(self, damaged: Path) -> None:
        if damaged.name == "privacy_ledger.parquet":
            fm.read_ledger(self.folder)
        else:
            fm.read_owners(self.folder)  # and run.json before it
        part = damaged.parent.name.removeprefix("kind=")
        if part in KINDS:
            for row in fm.read_events(self.folder, part).to_pylist():
                row["seq"] + row["time"] + row["round"]
        draw = (
            self.folder / damaged
        ).stat().st_size % 32  # what reads every file of a run is for some inputs
        if draw == 1:
            with tempfile.TemporaryDirectory(dir=self.folder.parent) as view:
                write_view(
                    self.folder,
                    ("broker", "owner:3", "buyer:a")[len(part) % 3],
                    Path(view) / "view",
                )
        if draw == 2:
            privacy_ledger.read(self.folder, 1e-6, 2)
        if draw:
            return
        table = "rounds" if part == "round" else part if part in KINDS else "owners"
        fm.sql(self.folder, f"SELECT * FROM {table}").to_pylist()


class ModelReader(FolderReader):
    """read_models, read_owners with records, and the models of a view."""

    name = "models"

    def fill(self) -> None:
        learning = {"model": {"name": "logistic"}, "log": {"models": "every"}}
        fm.run(build_scenario(SMALL | learning), self.folder)
        info = fm.read_run(self.folder)
        del info["models"]  # as in a run that was killed: no hash refuses a damaged file
        text = json.dumps(info | {"outcome": "running"})
        (self.folder / "run.json").write_text(text)

    def make(self, rng: random.Random) -> bytes:
        names = [n for n in self.whole if not n.startswith("events")]
        name = rng.choice(names)
        content = damaged(name, self.whole[name], rng, list(self.whole.values()))
        return name.encode() + b"\n" + content

    def look(self, damaged: Path) -> None:
        for model in fm.read_models(self.folder):
            assert model.parameters.shape == (model.parameters.size,)
        fm.read_owners(self.folder).to_pylist()
        with tempfile.TemporaryDirectory(dir=self.folder.parent) as view:
            write_view(self.folder, "owner:3", Path(view) / "view")


def require_no_markup(html: str) -> None:
    """A page has three scripts: its data, its own script and the library, which speaks of more."""
    own = html.replace(plotly_library.script(), "")
    assert own != html and own.count("<script") == 3, "data became markup"


class ReportReader(LogReader):
    """The page of a run."""

    name = "report"

    def look(self, damaged: Path) -> None:
        require_no_markup(page.make([self.folder]))


class SweepFolderReader(FolderReader):
    """read_sweep, what is done already, and the page of a sweep."""

    name = "sweep-folder"

    def fill(self) -> None:
        self.plan = parse_sweep(SWEEP)
        run_sweep(self.plan, self.folder)

    def look(self, damaged: Path) -> None:
        fm.read_sweep(self.folder).to_pylist()
        finished_runs(self.folder, self.plan)
        require_no_markup(page.make([self.folder]))


class ProbeReader(FolderReader):
    """read_probe, and the page of a probe."""

    name = "probe"

    def fill(self) -> None:
        self.folder.mkdir()
        truth, factor = draw_markets(build_scenario(SMALL), 3, None, 0)
        auction = fm.auctions.create("all-in")
        found = fm.strategy.probe(
            auction, truth, factor * truth.total_value(), effort="quick", levels=3
        )
        write_probe(
            found,
            self.folder / "probe.parquet",
            {"auction": "all-in", "scenario": "s", "effort": "quick"},
        )

    def look(self, damaged: Path) -> None:
        found, facts = read_probe(self.folder / damaged)
        found.false_parts(), found.relative_gain, found.factor, json.dumps(facts)
        require_no_markup(page.make([self.folder / damaged]))


def damaged(name: str, content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """A file with something wrong: of the kind that its format allows, or any bytes."""
    if rng.random() < 0.4 or name.endswith((".jsonl", ".safetensors")):
        return mutate_bytes(content, rng, others)
    if name.endswith(".json"):
        tree = mutate_tree(json.loads(content), rng, [])
        try:
            return json.dumps(tree, default=str).encode("utf-8", "surrogatepass")
        except (ValueError, RecursionError):
            return b'{"a":' * 100_000
    table = pq.ParquetFile(io.BytesIO(content)).read()
    for _ in range(rng.randint(1, 2)):
        table = rng.choice(TABLE_CHANGES)(table, rng)
    made = io.BytesIO()
    pq.write_table(table, made, compression=rng.choice(["zstd", "snappy", "gzip", "none"]))
    return made.getvalue()


def _some(table: pa.Table, rng: random.Random) -> int:
    return rng.randrange(table.num_columns)


def _without_column(table: pa.Table, rng: random.Random) -> pa.Table:
    return table.remove_column(_some(table, rng)) if table.num_columns > 1 else table


def _renamed(table: pa.Table, rng: random.Random) -> pa.Table:
    names = list(table.column_names)
    names[_some(table, rng)] = rng.choice(["", "x", rng.choice(names), "<script>", "é"])
    return table.rename_columns(names)


def _other_type(table: pa.Table, rng: random.Random) -> pa.Table:
    made: Any = rng.choice([
        pa.array(["x"] * len(table)), pa.array([b"\xff"] * len(table)), pa.nulls(len(table)), pa.array([[1]] * len(table), pa.list_(pa.int8())),
        pa.array([{"a": 1}] * len(table), pa.struct([("a", pa.int8())])), pa.array([True] * len(table)), pa.array([1.5] * len(table)),
        pa.array([2**62] * len(table)), pa.array(["<script>"] * len(table)).dictionary_encode(),
    ])  # fmt: skip
    place = _some(table, rng)
    return table.set_column(place, table.column_names[place], made)


def _other_values(table: pa.Table, rng: random.Random) -> pa.Table:
    place = _some(table, rng)
    values, kind = table.column(place).to_pylist(), table.schema.field(place).type
    wanted = float if pa.types.is_floating(kind) else int
    numbers = [v for v in NUMBERS if isinstance(v, wanted)]
    for _ in range(rng.choice([1, 1, 3, len(values)])):
        if values:
            values[rng.randrange(len(values))] = rng.choice([None, *numbers])
    try:
        return table.set_column(place, table.schema.field(place), pa.array(values, kind))
    except (pa.ArrowException, OverflowError):
        return table.set_column(place, table.column_names[place], pa.nulls(len(table), kind))


def _other_rows(table: pa.Table, rng: random.Random) -> pa.Table:
    return rng.choice([
        lambda: table.slice(0, 0), lambda: table.slice(0, 1), lambda: table.slice(1), lambda: pa.concat_tables([table, table]),
        lambda: pa.concat_tables([table] * 200), lambda: table.take(pa.array(range(len(table) - 1, -1, -1), pa.int64())),
    ])()  # fmt: skip


def _other_metadata(table: pa.Table, rng: random.Random) -> pa.Table:
    facts = rng.choice(
        [
            "{}",
            "[]",
            "null",
            "1e999",
            '{"seed": "x"}',
            '{"seed": 1e400}',
            '{"seed": -1}',
            "[" * 9000,
            "{",
            '{"auction": ["<b>"]}',
        ]
    )
    return table.replace_schema_metadata(
        rng.choice(
            [
                {},
                {"facts": facts},
                {"flmarket_schema": "99"},
                {"facts": facts, "flmarket_probe": "1"},
            ]
        )
    )


TABLE_CHANGES = (
    _without_column,
    _renamed,
    _other_type,
    _other_values,
    _other_values,
    _other_rows,
    _other_metadata,
)
