"""Processes that outlive the server: started apart from it, and recognised after a restart.

A process number alone is not enough, since numbers are given again. The moment at which a process
began tells it from a later one with the same number.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from flmarket_sim.plugins.foreign_code import policy
from flmarket_sim.storage.atomic_files import anew

COMMAND = (sys.executable, "-m", "flmarket_sim.cli")


def start(arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
    """Starts `flmarket ARGUMENTS`, in a session of its own, with its output in a file.

    It imports foreign code if this process does.
    """
    apart: dict[str, Any] = (
        {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
        if sys.platform == "win32"
        else {"start_new_session": True}
    )
    with anew(log) as output:
        return subprocess.Popen(
            [*COMMAND, *([] if policy.allowed else ["--no-plugins"]), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            **apart,
        )


def birth(number: int) -> str:
    """When a process began, in words of the system; empty if it is gone or has ended."""
    stat = Path(f"/proc/{number}/stat")
    if stat.exists():
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if fields[0] in "ZX" else fields[19]
    if sys.platform == "win32" or Path("/proc/self/stat").exists():
        return ""
    answer = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(number)], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip()


def interrupt(number: int) -> None:
    """Asks a process to end after its round."""
    try:
        if sys.platform == "win32":
            os.kill(number, getattr(signal, "CTRL_BREAK_EVENT", signal.SIGTERM))
        else:
            os.kill(number, signal.SIGTERM)
    except OSError:
        pass  # it has ended meanwhile
