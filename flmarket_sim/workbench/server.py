"""The server of the workbench: on the loopback address of this machine, with a new token."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable
from pathlib import Path
from threading import Timer

import uvicorn

from flmarket_sim.errors import InputError
from flmarket_sim.workbench.app import application
from flmarket_sim.workbench.jobs import Jobs
from flmarket_sim.workbench.security import new_token

LOOPBACK = "127.0.0.1"
USUAL_PORT = 8765


def serve(folder: Path, port: int | None, browser: bool, say: Callable[[str], None]) -> None:
    """Serves a folder until it is interrupted. `say` prints a line for the user."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{folder} is a file; the workbench needs a directory") from None
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error}") from None
    folder = folder.resolve()
    listening = _listen(port)
    number, token = listening.getsockname()[1], new_token()
    address = f"http://{LOOPBACK}:{number}/?token={token}"
    say(f"workbench of {folder}")
    say(f"  {address}")
    say("Only this machine can open it, and only with this address. Ctrl-C ends it.")
    if browser:
        Timer(0.5, webbrowser.open, [address]).start()
    config = uvicorn.Config(
        application(folder, token, number),
        log_level="critical",  # requests that Ctrl-C cuts off are no errors
        access_log=False,  # an address has the token
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        listening.close()
    jobs = Jobs(folder)
    going = [job.name for job in jobs.all() if jobs.running(job.name)]
    if going:
        say(f"still running, and not stopped by this: {', '.join(going)}")
        say("`flmarket workbench` on the same folder finds them again.")


def _listen(port: int | None) -> socket.socket:
    """A socket on a port; without one, on the usual port, or any that is free."""
    for number in (USUAL_PORT, 0) if port is None else (port,):
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((LOOPBACK, number))
            listening.listen(128)
            return listening
        except OSError as error:
            listening.close()
            if port is not None:
                raise InputError(
                    f"port {port} cannot be used: {error}; `port` names another, 0 any free one"
                ) from None
    raise InputError("no port of this machine is free")
