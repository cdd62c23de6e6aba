"""`flmarket report`: one HTML page about runs, sweeps, studies or probes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flmarket_sim.cli.output import AsJson, print_json, print_text


def report(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...", help="Directories of runs, sweeps, studies; files of probes."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The page; else report.html in the directory, or here for a probe or several."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write over a page that is there.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write one self-contained HTML page.

    It has a summary, interactive figures, tables, settings and provenance.
    """
    from flmarket_sim.results import report_page

    made = report_page.report(inputs, out, force)
    if as_json:
        print_json(made.as_json())
    else:
        print_text(made.path)
