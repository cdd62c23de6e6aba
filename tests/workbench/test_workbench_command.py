"""`flmarket workbench` says what is missing, and refuses places that it cannot serve."""

import socket
import subprocess
import sys

import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.workbench import server

BLOCKED = """
import sys
sys.modules["starlette"] = None
sys.argv = ["flmarket", "workbench"]
from flmarket_sim.cli import main
main()
"""


def test_without_the_extra_the_error_says_how_to_install_it(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 2 and 'pip install "flmarket-sim[workbench]"' in done.stderr
    assert "Traceback" not in done.stderr and not list(tmp_path.iterdir())


def test_a_port_in_use_and_a_file_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        server.serve(tmp_path / "file", 0, False, print)
    with socket.socket() as taken:
        taken.bind((server.LOOPBACK, 0))
        taken.listen()
        with pytest.raises(InputError, match="cannot be used"):
            server.serve(tmp_path, taken.getsockname()[1], False, print)


def test_it_listens_on_this_machine_alone():
    with server._listen(0) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
