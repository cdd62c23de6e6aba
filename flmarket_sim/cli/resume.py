"""`flmarket resume`: continue a run that was killed, interrupted or out of disk space."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flmarket_sim.cli.output import AsJson, print_json, print_note, progress, stdout
from flmarket_sim.errors import FlmarketError


def resume(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The directory of a run that was stopped.")
    ],
    as_json: AsJson = False,
) -> None:
    """Continue a run that was killed or interrupted, to exactly the files of a whole run."""
    from flmarket_sim.eventlog import read_run
    from flmarket_sim.market import simulation
    from flmarket_sim.report.run_summary import render

    done = (
        directory.is_dir()
        and (directory / "run.json").exists()
        and read_run(directory).get("outcome") == "finished"
    )
    try:
        with progress(directory.name) as report:
            finished = simulation.resume(directory, report)
    except KeyboardInterrupt:
        raise interrupted(directory) from None
    if done:
        print_note(f"{directory} is finished already: there was nothing to do")
    if as_json:
        print_json(finished.summary() | {"scenario_sha256": finished.info["scenario_sha256"]})
    else:
        stdout.print(render(finished))


def interrupted(directory: Path, repeatable: bool = True) -> FlmarketError:
    """The error of a run that was interrupted."""
    further = (
        f"`flmarket resume {directory}` goes on"
        if repeatable
        else "with hardened noise nothing can be resumed: start anew"
    )
    return FlmarketError(
        f"interrupted; the log up to here is readable in {directory}, and {further}"
    )
