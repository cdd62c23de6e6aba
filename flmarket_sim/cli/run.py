"""`flmarket run`: simulate a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flmarket_sim.cli.output import AsJson, Overrides, Wide, directory_and_table, progress
from flmarket_sim.cli.resume import interrupted, show_run
from flmarket_sim.cli.view import run_view
from flmarket_sim.errors import InputError
from flmarket_sim.storage.result_folders import free_folder, result_folder

ScenarioFile = Annotated[
    Path,
    typer.Argument(
        metavar="SCENARIO", help="A scenario file, or a shipped one by name: quickstart."
    ),
]


def run(
    scenario: ScenarioFile,
    overrides: Overrides = None,
    seed: Annotated[int | None, typer.Option(help="Another seed.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Directory for the run, new or empty; or a file for its table: .csv, .md, .tex, "
            ".parquet."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a run there that failed or was stopped.")
    ] = False,
    view: Annotated[
        str | None,
        typer.Option(help="Write only what broker, buyer, buyer:NAME or owner:17 sees of it."),
    ] = None,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a scenario and write every event to Parquet."""
    from flmarket_sim.market import simulation
    from flmarket_sim.scenario.scenario_file import load_scenario

    settings = list(overrides or ()) + ([] if seed is None else [f"seed={seed}"])
    loaded = load_scenario(scenario, settings)
    if view is not None and force:
        raise InputError("--force replaces the directory of a run; it does not go with --view")
    if view is not None:
        run_view(loaded, view, out or free_folder(f"{loaded.name}-{view}", "view"), as_json)
        return
    directory, table = directory_and_table(out)
    place = result_folder if force else free_folder
    folder = directory or place(loaded.name, loaded.digest())
    try:
        with progress(loaded.name) as report:
            finished = simulation.run(loaded, folder, progress=report, force=force)
    except KeyboardInterrupt:
        raise interrupted(folder, loaded.repeatable) from None
    show_run(finished, wide, table, as_json)
