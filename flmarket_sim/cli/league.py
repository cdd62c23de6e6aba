"""`flmarket league`: every mechanism on the same markets, under the same attack."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flmarket_sim.cli.app import LOOK
from flmarket_sim.cli.crew import Cluster, ClusterOptions, ClusterWait, Workers, crew_from
from flmarket_sim.cli.output import (
    AsJson,
    Wide,
    directory_and_table,
    print_json,
    print_next_steps,
    print_paragraphs,
    progress,
    save_table,
)
from flmarket_sim.cli.study import show_finding
from flmarket_sim.errors import InputError, Interrupted

if TYPE_CHECKING:
    from flmarket_sim.experiments.worker_processes import Crew
    from flmarket_sim.league.card import Size
    from flmarket_sim.results.study_result import StudyResult

app = typer.Typer(
    help="Play mechanisms through the card of the league.", invoke_without_command=True, **LOOK
)


@app.callback()
def league(
    context: typer.Context,
    auction: Annotated[
        list[str] | None,
        typer.Option(
            "--auction",
            "-a",
            help="A mechanism: NAME, NAME@WEIGHTS, module:Class, file.py:Class; several times. "
            "'all' stands for all built-in ones, which play by default.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A quarter of the markets, in minutes.")
    ] = False,
    workers: Workers = None,
    cluster: Cluster = None,
    cluster_options: ClusterOptions = None,
    cluster_wait: ClusterWait = 300.0,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Directory for tables, figures and a page: new, or of a stopped league; or a file "
            "for the table: .csv, .md, .tex, .parquet."
        ),
    ] = None,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Play mechanisms through the card, and say where each stands."""
    if context.invoked_subcommand is not None:
        return
    directory, table = directory_and_table(out)
    crew = crew_from(workers, cluster, cluster_options, cluster_wait)
    began = time.perf_counter()
    result = _played(auction or ["all"], "quick" if quick else "full", directory, crew)
    save_table(result.finding.rows, table)
    if as_json:
        print_json(result.as_json())
        return
    show_finding(result.finding, wide)
    seconds, page = time.perf_counter() - began, result.path / "report.html"
    print_paragraphs(
        [f"{seconds:.0f} s; tables, figures and the page report.html are in {result.path}"]
    )
    print_next_steps(f"open {shlex.quote(str(page))}", "flmarket league enter my_module.py:Mine")


@app.command()
def enter(
    auction: Annotated[
        str, typer.Argument(metavar="NAME", help="module:Class, file.py:Class, or a name.")
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="A quarter of the markets, in two minutes.")
    ] = False,
    workers: Workers = None,
    out: Annotated[
        Path | None, typer.Option(help="The file of the entry; by default NAME.json here.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file of an earlier entry.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Play one mechanism, say where it stands among the entries, and write its own entry."""
    from flmarket_sim.league import entries
    from flmarket_sim.league.places import why_no_place
    from flmarket_sim.league.players import ALL

    if auction == ALL:
        raise InputError("one mechanism is entered at a time; `flmarket league` plays all")
    size: Size = "quick" if quick else "full"
    path = _new_file(out or Path(entries.file_name(auction)), force)
    result = _played([auction], size, None, crew_from(workers, None, None, 0.0))
    entry = entries.entry_of(auction, result.finding.rows, size)
    entries.write_entry(path, entry)
    others = [one for one in entries.shipped_entries() if one["auction"] != entry["auction"]]
    if as_json:
        print_json(entry)
        return
    show_finding(result.finding)
    place, why = entries.place_among(entry, others), why_no_place(entry["whole"])
    many = f"among {len(others) + 1} mechanisms, by its error over the floor"
    stands = f"has no place {many}: it {why}" if place is None else f"has place {place} {many}"
    beside = "; its card was the quick one" if size == "quick" else ""
    print_paragraphs(
        [
            f"{entry['auction']} {stands}{beside}. `flmarket league entries` shows all",
            f"the entry is in {path}; its tables and figures are in {result.path}",
        ]
    )


@app.command("entries")
def show_entries(wide: Wide = False, as_json: AsJson = False) -> None:
    """Show the entries that come with the package, by their error over the floor."""
    from flmarket_sim.cli.output import print_table
    from flmarket_sim.league import entries
    from flmarket_sim.league.league_study import SHOWN
    from flmarket_sim.league.players import records

    found = entries.shipped_entries()
    if as_json:
        print_json(found)
        return
    kept = ("place", "auction", "size")
    rows = [
        {name: entry[name] for name in kept}
        | {"records": records(entry["mechanism"])}
        | entry["whole"]
        for entry in found
    ]
    names = list(dict.fromkeys(name for row in rows for name in row))
    shown = ("place", "auction", "size", *SHOWN[2:])
    print_table([{name: row.get(name) for name in names} for row in rows], shown, wide)


def _new_file(path: Path, force: bool) -> Path:
    """The path of an entry that can be written; refused before anything is played."""
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: {path.parent} is not a folder")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name the file of the entry")
    if path.exists() and not force:
        raise InputError(f"{path} exists; --force replaces it, --out names another file")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{path} cannot be written: no permission to write into {path.parent}")
    return path


def _played(auctions: list[str], size: Size, directory: Path | None, crew: Crew) -> StudyResult:
    """The league of these mechanisms, with its page; Ctrl-C says how to continue."""
    from flmarket_sim.league.league_scenario import league_scenario
    from flmarket_sim.league.players import players
    from flmarket_sim.results import league_result, study_result
    from flmarket_sim.results.report_page import report

    asked = players(auctions)
    folder = directory or study_result.usual_folder(league_scenario(asked, size))
    try:
        with progress(f"league, {size} card", "tasks") as shown:
            result = league_result.league(
                asked, folder, quick=size == "quick", progress=shown, crew=crew
            )
            report(result.path, force=True)
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted; finished tasks are in {folder}, and the same command continues"
        ) from None
    return result
