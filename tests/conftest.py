"""Shared pieces: small scenarios, random profiles, and the real data where it is there."""

from __future__ import annotations

import signal

import pytest
from hypothesis import settings

import flmarket_sim as fm
from flmarket_sim.errors import DataError
from flmarket_sim.learning.nsl_kdd import NslKdd
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.scenario_file import build_scenario

settings.register_profile("suite", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("suite")
LONG = {"test_reproduction.py", "test_notebooks.py", "test_cli.py", "test_check_auction.py"}


def pytest_configure() -> None:
    """Tests that run in the background of a shell, or under nohup, ignore signals. The commands
    that a test starts and interrupts would inherit that, but not a handler."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None and signal.getsignal(hangup) is signal.SIG_IGN:
        signal.signal(hangup, lambda *_: None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with long tests start first, so that no worker is left with them at the end."""
    first = {item.path for item in items if item.get_closest_marker("processes")}
    items.sort(key=lambda item: item.path not in first and item.path.name not in LONG)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory):
    """Features cached during the tests go to a folder of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLMARKET_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def own_registrations():
    """Plug-ins that a test registers are gone when it ends, so no other test meets them."""
    before = {kind: dict(kind._classes) for kind in registry.KINDS.values()}
    yield
    for kind, classes in before.items():
        for name in kind._classes.keys() - classes.keys() - kind._targets.keys():
            del kind._classes[name]


@pytest.fixture(scope="session")
def nsl_kdd():
    try:
        return NslKdd().load(Streams(0))
    except DataError as error:
        pytest.skip(str(error))


@pytest.fixture
def market(tmp_path):
    """Runs a small market without learning; keyword tables change the scenario.

    Returns the run's directory.
    """
    count = 0

    def run(**tables):
        nonlocal count
        count += 1
        data = {
            "rounds": 4,
            "data": {"name": "synthetic", "records": 4000},
            "model": {"name": "none"},
        } | tables
        return fm.run(build_scenario(data), tmp_path / f"run {count}").path

    return run
