"""`flmarket workbench`: a local web page over a folder of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flmarket_sim.cli.output import print_text
from flmarket_sim.errors import InputError


def workbench(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of runs, sweeps and studies.")
    ] = Path("runs"),
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port; 0: any free one. [default: 8765, or any]"),
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, and open no browser.")
    ] = False,
) -> None:
    """Open a web page over a folder: start, watch, compare and question runs, on this machine."""
    try:
        from flmarket_sim.workbench.server import serve
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("starlette", "uvicorn", "anyio", "plotly"):
            raise
        raise InputError(
            f"the workbench needs {missing}, which is not installed; "
            'pip install "flmarket-sim[workbench]" installs it'
        ) from None
    serve(directory, port, not no_browser, print_text)
