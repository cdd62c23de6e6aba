"""`flmarket view`, and `flmarket run --view`: the log as one participant sees it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from flmarket_sim.cli.output import AsJson, print_json, print_note, print_text, progress
from flmarket_sim.errors import Interrupted


def view(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.")],
    who: Annotated[str, typer.Argument(help="broker, buyer, buyer:NAME or owner:17.")],
    out: Annotated[Path, typer.Option(help="Directory for the view; new or empty.")],
    as_json: AsJson = False,
) -> None:
    """Write the log of a run as one participant sees it: her events, and what she knows of them."""
    from flmarket_sim.eventlog import write_view

    _show(write_view(directory, who, out), out, as_json)
    _warn(directory)


def run_view(scenario: Any, who: str, out: Path, as_json: bool) -> None:
    """Simulates a scenario and writes only the view of one participant."""
    from flmarket_sim.eventlog import write_view
    from flmarket_sim.eventlog.participants import parse_participant
    from flmarket_sim.market import simulation
    from flmarket_sim.storage.result_folders import claim

    parse_participant(
        who, [buyer.name for buyer in scenario.resolved_buyers()], scenario.owners.count
    )
    claim(out, "view")
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.resolve().parent) as hidden:
        try:
            with progress(scenario.name) as report:
                finished = simulation.run(scenario, Path(hidden) / "run", progress=report)
        except KeyboardInterrupt:
            raise Interrupted(
                "interrupted; a view needs a finished run, so nothing was written"
            ) from None
        facts = write_view(finished.path, who, out)
        _warn(finished.path)
    _show(facts, out, as_json)


def _warn(run: Path) -> None:
    from flmarket_sim.eventlog.view_warnings import view_warnings

    for warning in view_warnings(run):
        print_note(f"warning: {warning}")


def _show(facts: dict[str, Any], out: Path, as_json: bool) -> None:
    if as_json:
        print_json(facts | {"directory": str(out)})
        return
    kinds = ", ".join(
        f"{content['rows']:,} {kind}"
        for kind, content in facts["log"]["kinds"].items()
        if content["rows"]
    )
    print_text(f"{facts['view']} sees {facts['log']['events']:,} events: {kinds or 'none'}")
    print_text(f"in {out}")
