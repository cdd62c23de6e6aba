"""The Dask workers of `--cluster local`: nobody else can give them work, and none stays behind."""

import multiprocessing
import socket
import urllib.error
import urllib.request

import psutil
import pytest

from flmarket_sim.experiments.dask_places import crew_at

pytestmark = pytest.mark.processes
PAGES = ("", "status", "health", "info/main/workers.html", "json/counts.json", "metrics")


def process_of(task):
    return psutil.Process().pid


def listening():
    return [
        place.laddr
        for place in psutil.Process().net_connections("inet")
        if place.status == psutil.CONN_LISTEN
    ]


def test_no_port_takes_work_and_no_process_stays():
    before = listening()
    performed = crew_at("local", workers=2).perform(process_of, range(6))
    task, first = next(performed)
    ports = [place for place in listening() if place not in before]
    assert {address for address, _ in ports} <= {"127.0.0.1"}
    for address, port in ports:
        for page in PAGES:
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://{address}:{port}/{page}", timeout=10)
        with socket.create_connection((address, port)) as raw:  # what a Dask client would say
            raw.sendall(b"\x01\x00\x00\x00\x00\x00\x00\x00" * 4 + b"\r\n\r\n")
            raw.settimeout(10)
            assert raw.recv(100)[:12] in (b"", b"HTTP/1.1 400")
    rest = dict(performed)
    assert set(rest) | {task} == set(range(6))
    assert not any(psutil.pid_exists(process) for process in {first, *rest.values()})


def test_closing_in_the_middle_ends_the_processes_of_tasks():
    performed = crew_at("local", workers=2).perform(process_of, range(40))
    _, process = next(performed)
    assert psutil.pid_exists(process)
    performed.close()
    assert not psutil.pid_exists(process) and multiprocessing.active_children() == []
