"""`flmarket cite`: how to cite this software, the paper whose market it simulates, and a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flmarket_sim.cli.output import AsJson, print_json, print_text


def cite(
    directory: Annotated[
        Path | None,
        typer.Argument(metavar="RUN", help="A run whose scenario and seed are to be named too."),
    ] = None,
    bibtex: Annotated[
        bool, typer.Option("--bibtex/--plain", help="Entries for BibTeX, or plain sentences.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Print how to cite flmarket and the FL-Market paper.

    With the directory of a run, it also prints the scenario, its hash and its seed.
    """
    from flmarket_sim.cli import citation

    facts = None if directory is None else citation.run_facts(directory)
    if as_json:
        print_json(citation.as_dict(facts))
        return
    print_text(citation.as_bibtex(facts) if bibtex else citation.as_sentences(facts))
