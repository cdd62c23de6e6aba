"""How much a command says: `-q` leaves results only, `-v` adds where time went and tracebacks.

Every command has both options. They are added here and not in the commands' own signatures.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer


@dataclass
class Verbosity:
    """What this process says besides its results; `spent` has the seconds of each piece of work."""

    quiet: bool = False
    verbose: bool = False
    began: float = 0.0
    spent: dict[str, float] = field(default_factory=dict)

    def reset(self) -> None:
        """A new command begins."""
        self.quiet = self.verbose = False
        self.began = time.perf_counter()
        self.spent.clear()


chosen = Verbosity()


def _choose(context: typer.Context, option: typer.CallbackParam, value: bool) -> None:
    if value and not context.resilient_parsing:
        setattr(chosen, str(option.name), True)


def _shape(
    quiet: Annotated[
        bool,
        typer.Option(
            "-q",
            "--quiet",
            callback=_choose,
            expose_value=False,
            help="Print results only: no progress, notes or next steps.",
        ),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "-v",
            "--verbose",
            callback=_choose,
            expose_value=False,
            help="Say more: where time went, versions, tracebacks of errors.",
        ),
    ] = False,
) -> None:
    """A command that has nothing but the two options, from which other commands get them."""


def verbosity_options() -> list[Any]:
    """The options `-q` and `-v`, for one command."""
    only = typer.Typer(add_completion=False)
    only.command()(_shape)
    return list(typer.main.get_command(only).params)


@contextmanager
def timed(work: str) -> Iterator[None]:
    """Adds the seconds of a block to those of this piece of work."""
    began = time.perf_counter()
    try:
        yield
    finally:
        chosen.spent[work] = chosen.spent.get(work, 0.0) + time.perf_counter() - began


def print_times() -> None:
    """With `-v`: versions, and where the time of the command went, on stderr."""
    if not chosen.verbose:
        return
    from flmarket_sim import __version__

    whole = time.perf_counter() - chosen.began
    parts = [f"{work} {seconds:.2f} s" for work, seconds in chosen.spent.items()]
    parts.append(f"everything else {whole - sum(chosen.spent.values()):.2f} s")
    libraries = [
        f"{name} {sys.modules[name].__version__}"
        for name in ("numpy", "pyarrow", "simpy", "torch")
        if name in sys.modules
    ]
    python = sys.version.partition(" ")[0]
    print(
        f"flmarket {__version__}, Python {python}" + "".join(f", {each}" for each in libraries),
        f"{whole:.2f} s: {', '.join(parts)}",
        sep="\n",
        file=sys.stderr,
    )
