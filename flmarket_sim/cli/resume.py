"""`flmarket resume`: continue a run that was killed, interrupted or out of disk space."""

from __future__ import annotations

import atexit
import gc
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flmarket_sim.cli.output import (
    AsJson,
    TableFile,
    Wide,
    print_json,
    print_next_steps,
    print_note,
    print_paragraphs,
    print_table,
    print_text,
    progress,
    save_table,
)
from flmarket_sim.errors import FlmarketError, Interrupted

if TYPE_CHECKING:
    from flmarket_sim.eventlog.run import Run


def resume(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The directory of a run that was stopped.")
    ],
    mixed: Annotated[
        bool,
        typer.Option(
            "--mixed",
            help="Go on with other weights, plug-ins, versions or another CPU than began the run; "
            "run.json says so.",
        ),
    ] = False,
    wide: Wide = False,
    table: TableFile = None,
    as_json: AsJson = False,
) -> None:
    """Continue a run that was killed or interrupted, to exactly the files of a whole run."""
    from flmarket_sim.eventlog import read_run
    from flmarket_sim.market import simulation

    done = (
        directory.is_dir()
        and (directory / "run.json").exists()
        and read_run(directory).get("outcome") == "finished"
    )
    try:
        with progress(directory.name) as report:
            finished = simulation.resume(directory, report, mixed=mixed)
    except KeyboardInterrupt:
        raise interrupted(directory) from None
    if done:
        print_note(f"{directory} is finished already: there was nothing to do")
    show_run(finished, wide, table, as_json)


def show_run(run: Run, wide: bool, table: Path | None, as_json: bool) -> None:
    """Prints a finished run, or its summary as JSON, and writes its table if a file is named."""
    from flmarket_sim.report.run_summary import in_brief

    print_warnings(run)
    if table is not None:
        save_table(in_brief(run, most=None).rows, table)
    if as_json:
        print_json(run.summary() | {"scenario_sha256": run.info["scenario_sha256"]})
        return
    brief = in_brief(run)
    print_text(brief.title)
    print_table(brief.rows, brief.columns, wide)
    print_paragraphs(brief.sentences)
    place = shlex.quote(str(run.path))
    print_next_steps(
        f"flmarket report {place}",
        f'flmarket sql {place} "SELECT round, buyer, spent, error_bound FROM rounds LIMIT 8"',
    )


def print_warnings(run: Run) -> None:
    """The warnings of a run on stderr, a line for each."""
    from flmarket_sim.eventlog.summary import warnings_of

    for text in warnings_of(run.info):
        print_note(f"Warning: {text}")


def interrupted(directory: Path, repeatable: bool = True) -> FlmarketError:
    """The error of a run that was interrupted, with which the process ends."""
    atexit.register(gc.freeze)  # a large market is not freed object by object: that takes seconds
    further = (
        f"`flmarket resume {shlex.quote(str(directory))}` goes on"
        if repeatable
        else "with hardened noise nothing can be resumed: start anew"
    )
    return Interrupted(f"interrupted; the log up to here is readable in {directory}, and {further}")
