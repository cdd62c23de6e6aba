"""Commands in the process of the test: quicker than a process of their own."""

import contextlib
import io
import signal
import sys
from dataclasses import dataclass
from unittest import mock

from flmarket_sim.cli import main


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


def called(*arguments):
    """Runs `flmarket` with these arguments here."""
    out, err = io.StringIO(), io.StringIO()
    before = signal.getsignal(signal.SIGTERM)
    try:
        with (
            mock.patch.object(sys, "argv", ["flmarket", *map(str, arguments)]),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        signal.signal(signal.SIGTERM, before)
    return Ended(code, out.getvalue(), err.getvalue())
