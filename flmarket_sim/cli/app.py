"""The command line: each command is a file of this folder, imported when it is called.

Results go to stdout and progress to stderr. The exit code is 0 when the command succeeded,
1 when it failed and 2 when its input was wrong.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from flmarket_sim.errors import FlmarketError, InputError

COMMANDS = {  # name: (where it is defined, what `flmarket --help` says of it)
    "run": ("run:run", "Simulate a scenario and write every event to Parquet."),
    "resume": ("resume:resume", "Continue a run that was killed or interrupted."),
    "validate": ("validate:validate", "Check a scenario and report everything wrong with it."),
    "list": ("listing:list_", "List the names that scenarios can use, and the scenarios here."),
    "sql": ("sql:sql", "Query the log of a run in SQL."),
    "view": ("view:view", "Write the log of a run as one participant sees it."),
    "report": ("report:report", "Write an HTML page about runs, sweeps, studies or probes."),
    "sweep": ("sweep:sweep", "Run a scenario over axes and seeds."),
    "study": ("study:study", "Answer the question in the [study] table of a scenario."),
    "evaluate": ("evaluate:evaluate", "Compare auctions on the same markets."),
    "probe": ("probe:probe", "Search for the best misreport of every owner."),
    "audit": ("audit:audit", "Compare what an auction declares with what a search finds."),
    "train": ("train:train", "Train a learned auction."),
    "reproduce": ("reproduce:reproduce", "Reproduce the figures and tables of the paper."),
    "data": ("data:app", "List, fetch and check data sets."),
    "privacy": ("privacy:app", "Audit the noise, or show the privacy ledger of a run."),
}
LOOK: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": None,  # the modules that draw help in colour take 0.15 s to import
}


class LazyCommands(TyperGroup):
    """Lists commands from a table, and imports the file of a command only when it is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, (_, summary) in COMMANDS.items():
            self.add_command(TyperCommand(name, short_help=summary))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else _imported(name), rest


def _imported(name: str) -> Any:
    """The command NAME, with its arguments and options."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    command = getattr(import_module(f"flmarket_sim.cli.{module}"), attribute)
    if not isinstance(command, typer.Typer):
        single = typer.Typer(**LOOK)
        single.command(name)(command)
        command = single
    return typer.main.get_command(command)


app = typer.Typer(
    cls=LazyCommands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 100},
    **LOOK,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from flmarket_sim import __version__

        print(f"flmarket {__version__}")
        raise typer.Exit


@app.callback()
def flmarket(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """A laboratory for markets of locally private gradients."""


def main() -> None:
    """Runs the command line; an error of the user ends in one clear paragraph."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a file name may not be valid text
    signal.signal(signal.SIGTERM, _interrupt)  # so that files are completed before the end
    try:
        app()
    except BrokenPipeError:
        sys.exit(1)
    except Exception as error:
        if not isinstance(error, FlmarketError | MemoryError) and os.environ.get(
            "FLMARKET_TRACEBACK"
        ):
            raise
        print(f"flmarket: {_paragraph(error)}", file=sys.stderr)
        sys.exit(2 if isinstance(error, InputError) else 1)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _paragraph(error: Exception) -> str:
    if isinstance(error, FlmarketError):
        return str(error)
    if isinstance(error, MemoryError):
        reason = f" ({error})" if str(error) else ""
        return (
            f"there is not enough memory for this{reason}; ask for fewer records, owners, markets "
            "or levels at once"
        )
    return (
        f"{type(error).__name__}: {error}. This error was not foreseen; FLMARKET_TRACEBACK=1 "
        "shows where it happened"
    )
