"""The command line: each command is a file of this folder, imported when it is called.

Results go to stdout and progress to stderr. The exit code is 0 when the command succeeded,
1 when it failed, 2 when its input was wrong, and 130 when Ctrl-C, SIGTERM or the end of its
terminal stopped it.
"""

from __future__ import annotations

import io
import signal
import sys
import traceback
import warnings
from importlib import import_module
from typing import Annotated, Any, NoReturn, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from flmarket_sim.author_frames import described, whole_wanted
from flmarket_sim.cli.hints import hints
from flmarket_sim.cli.option_words import with_options
from flmarket_sim.cli.plugin_option import end_command, new_command, plugin_options
from flmarket_sim.cli.verbosity import chosen, print_times, verbosity_options
from flmarket_sim.errors import (
    FlmarketError,
    FlmarketWarning,
    InputError,
    Interrupted,
    one_line,
    printable,
)

COMMANDS = {  # in order of use; name: (where it is defined, what `flmarket --help` says of it)
    "run": ("run:run", "Simulate a scenario and write every event to Parquet."),
    "report": ("report:report", "Write an HTML page about runs, sweeps, studies or probes."),
    "workbench": ("workbench:workbench", "Open a web page over a folder of runs."),
    "sql": ("sql:sql", "Query the log of a run in SQL."),
    "resume": ("resume:resume", "Continue a run that was killed or interrupted."),
    "verify": ("verify:verify", "Check that runs, sweeps and studies are what was written."),
    "view": ("view:view", "Write the log of a run as one participant sees it."),
    "list": ("listing:list_", "List the names that scenarios can use, and the scenarios here."),
    "validate": ("validate:validate", "Check a scenario and report everything wrong with it."),
    "data": ("data:app", "List, fetch and check data sets."),
    "evaluate": ("evaluate:evaluate", "Compare auctions on the same markets."),
    "probe": ("probe:probe", "Search for the best misreport of every owner."),
    "audit": ("audit:audit", "Compare what an auction declares with what a search finds."),
    "train": ("train:train", "Train a learned auction."),
    "sweep": ("sweep:sweep", "Run a scenario over axes and seeds."),
    "study": ("study:study", "Answer the question in the [study] table of a scenario."),
    "league": ("league:app", "Play every mechanism on the same markets, under the same attack."),
    "flower": ("flower:app", "Hold a market with real federated clients, through Flower."),
    "privacy": ("privacy:app", "Audit the noise, or show the privacy ledger of a run."),
    "reproduce": ("reproduce:reproduce", "Reproduce the figures and tables of the paper."),
    "cite": ("cite:cite", "Print how to cite flmarket, the paper, and a run."),
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
        self.params += verbosity_options() + plugin_options()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        chosen.reset()
        new_command()
        if any("\0" in argument for argument in args):  # no file and no name can have it
            raise InputError("an argument has a null byte, which no name of a file can have")
        with hints():
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else _imported(name), rest

    def invoke(self, ctx: Any) -> Any:
        try:
            with hints():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted("interrupted") from None
        finally:
            end_command()


def _imported(name: str) -> Any:
    """The command NAME, with its arguments and options."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    command = getattr(import_module(f"flmarket_sim.cli.{module}"), attribute)
    if not isinstance(command, typer.Typer):
        single = typer.Typer(**LOOK)
        single.command(name)(command)
        command = single
    made = typer.main.get_command(command)
    for leaf in getattr(made, "commands", {"": made}).values():
        leaf.params += verbosity_options() + plugin_options()
    return made


app = typer.Typer(
    cls=LazyCommands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
    add_completion=True,
    rich_markup_mode=LOOK["rich_markup_mode"],
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
    warnings.showwarning = _show_warning
    signal.signal(signal.SIGTERM, _interrupt)  # so that files are completed before the end
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN:  # as under nohup
        signal.signal(hangup, _hang_up)
    try:
        app()
    except BrokenPipeError:
        sys.exit(1)
    except KeyboardInterrupt:  # outside of any command
        _end(Interrupted("interrupted"))
    except Exception as error:
        explained = isinstance(error, FlmarketError | MemoryError) and error.__cause__ is None
        if whole_wanted() and not explained:
            raise
        if chosen.verbose:
            print(printable("".join(traceback.format_exception(error))), file=sys.stderr)
        _end(error)
    finally:
        print_times()


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """One of our warnings is a line on stderr; those of libraries look as they always do."""
    if not issubclass(category, FlmarketWarning):
        print(warnings.formatwarning(message, category, filename, lineno), end="", file=sys.stderr)
    elif not chosen.quiet:
        print(f"flmarket: {printable(str(message))}", file=sys.stderr)


def _end(error: Exception) -> NoReturn:
    print(f"flmarket: {_shown(_paragraph(error))}", file=sys.stderr)
    sys.exit(_exit_code(error))


def _exit_code(error: Exception) -> int:
    if isinstance(error, Interrupted):
        return 128 + signal.SIGINT
    return 2 if isinstance(error, InputError) else 1


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _hang_up(number: int, _: object) -> None:
    """The terminal is gone; a shell and the system may both say so, and once is enough."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _shown(message: str) -> str:
    """The message without what would steer a terminal; a file name in it takes one line."""
    for argument in sys.argv[1:]:
        if "\n" in argument:
            message = message.replace(argument, one_line(argument))
    return printable(message)


def _paragraph(error: Exception) -> str:
    if isinstance(error, FlmarketError):
        return with_options(str(error))
    if isinstance(error, MemoryError):
        reason = f" ({error})" if str(error) else ""
        return (
            f"there is not enough memory for this{reason}; ask for fewer records, owners, markets "
            "or levels at once"
        )
    return f"{described(error)}\nThis error was not foreseen; -v shows where it happened"
