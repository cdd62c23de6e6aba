"""The command line as a user meets it: real processes."""

import json
import os
import subprocess
import sys

from tests.support.paths import ROOT
from tests.support.patience import PATIENCE


def flmarket(*arguments, cwd=ROOT, env=None):
    """Runs `flmarket` in a process of its own."""
    program = os.path.join(os.path.dirname(sys.executable), "flmarket")
    return subprocess.run(
        [program, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=os.environ | (env or {}),
    )


def json_output(*arguments, **where):
    """The JSON that a successful command prints; a failure shows what the command printed."""
    result = flmarket(*arguments, **where)
    assert result.returncode == 0, (
        f"exit {result.returncode}, stderr: {result.stderr}, stdout: {result.stdout}"
    )
    return json.loads(result.stdout)
