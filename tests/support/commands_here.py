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
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
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
        for number, handler in before.items():
            signal.signal(number, handler)
    return Ended(code, out.getvalue(), err.getvalue())
