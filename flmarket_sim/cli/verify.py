"""`flmarket verify`: whether results are what was written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flmarket_sim.cli.output import AsJson, print_json, print_text, progress


def verify(
    directories: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Directories of runs, sweeps, studies.")
    ],
    as_json: AsJson = False,
) -> None:
    """Compare every file of runs, sweeps and studies with the hash that was written with it.

    The exit code is 0 if everything holds, and 1 if something does not.
    """
    from flmarket_sim.results import verification

    with progress("verify", "files") as report:
        found = verification.verify(*directories, progress=report)
    if as_json:
        print_json([answer.as_dict() for answer in found])
    for answer in () if as_json else found:
        word = "holds" if answer.holds else "does not hold"
        print_text(f"{answer.path}: this {answer.kind} {word} ({answer.checked:,} checks)")
        for problem in answer.damaged:
            print_text(f"  damaged: {problem}")
        for reason in answer.unchecked:
            print_text(f"  not checked: {reason}")
    if not all(answer.holds for answer in found):
        raise typer.Exit(1)
