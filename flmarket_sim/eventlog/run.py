"""A run as an object: its directory, and the tables in it."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from flmarket_sim.errors import one_line
from flmarket_sim.eventlog.model_files import KeptModel, read_model, read_models
from flmarket_sim.eventlog.reader import (
    read_events,
    read_ledger,
    read_owners,
    read_run,
    read_scenario,
    sql,
)
from flmarket_sim.eventlog.summary import summarise
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.tables.result_table import ResultTable
from flmarket_sim.tables.table_text import as_html


class Run:
    """The directory of a run. It can be passed wherever a path can.

    Tables are read from the directory each time, so a run that is still being simulated shows what
    it has written so far.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        read_run(self.path)  # refuses the directory of something else

    @property
    def info(self) -> dict[str, Any]:
        """The content of run.json: scenario, hashes, versions, outcome."""
        return read_run(self.path)

    def events(self, kind: str) -> ResultTable:
        """All events of a kind, in order: "bid", "payment", ... (docs/event-log.md)."""
        return ResultTable(read_events(self.path, kind))

    @property
    def rounds(self) -> ResultTable:
        """One row a round of a buyer."""
        return self.events("round")

    @property
    def owners(self) -> ResultTable:
        """One row an owner: her true type and, in a market with learning, her records."""
        return ResultTable(read_owners(self.path))

    @property
    def ledger(self) -> ResultTable:
        """One row an owner: what she sold and earned in all."""
        return ResultTable(read_ledger(self.path))

    @property
    def scenario(self) -> Scenario:
        """The scenario of the run."""
        return read_scenario(self.path)

    def model(self, rounds: int | None = None, buyer: str | None = None) -> KeptModel:
        """A kept model: its parameters after so many rounds, by default the last that was kept.

        Round r of the log begins with the model after r rounds and ends with the one after r + 1.
        """
        return read_model(self.path, rounds, buyer)

    def models(self, buyer: str | None = None) -> Iterator[KeptModel]:
        """The kept models of one buyer, or of all buyers one after the other."""
        return read_models(self.path, buyer)

    def sql(self, query: str, *, unsafe: bool = False) -> ResultTable:
        """The answer to a query in DuckDB's SQL, in which every kind of event is a table.

        The query reads this run and nothing else, unless `unsafe` allows all that DuckDB can do.
        """
        return ResultTable(sql(self.path, query, unsafe=unsafe))

    def summary(self) -> dict[str, Any]:
        """Totals of the run and of each buyer: what `flmarket run --json` prints."""
        return summarise(self.path)

    def plot(self, column: str | None = None, path: str | os.PathLike[str] | None = None) -> Any:
        """Draws a column of `rounds` over the rounds as a matplotlib figure.

        By default it is the accuracy, or the error bound in a market without a model. The figure is
        written where a path is given (.pdf, .svg or .png).
        """
        # named as text, since figures are made in a room above this one
        return import_module("flmarket_sim.results.run_figure").draw_run(self, column, path)

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return one_line(f"<Run {self._facts()}, in {self.path}>")

    def _repr_html_(self) -> str:
        rows = [{"buyer": name} | totals for name, totals in self.summary()["buyers"].items()]
        return f"<p>Run {html.escape(f'{self._facts()}, in {self.path}')}</p>\n{as_html(rows)}"

    def _facts(self) -> str:
        info = self.info
        events = info.get("log", {}).get("events")
        counted = "" if events is None else f", {events:,} events"
        return f"of {info['scenario']['name']}: {info['outcome']}{counted}"
