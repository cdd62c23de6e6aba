"""A pytest plug-in for `make mutants`: quick tests first, and slow ones not at all.

A mutant meets every test that reaches its function, so a test of many seconds would be played a
thousand times. The first run of mutmut measures all tests; those slower than LIMIT are left out. A
mutant runs in a copy of the process that measured the tests, so what that one remembered of the
functions without changes is forgotten first.
"""

import functools
import gc
import json
from pathlib import Path

import pytest

MEASURED = Path("mutmut-stats.json")  # inside of mutants/, where mutmut runs the tests
LIMIT = 0.5  # seconds


def pytest_sessionstart() -> None:
    for one in gc.get_objects():
        if isinstance(one, functools._lru_cache_wrapper):
            one.cache_clear()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        item._nodeid = item.nodeid  # type: ignore[attr-defined]  # mutmut 3.8 reads it
    seconds = _seconds()
    slow = [item for item in items if seconds.get(item.nodeid, 0.0) > LIMIT]
    if slow:
        config.hook.pytest_deselected(items=slow)
    quick = [item for item in items if seconds.get(item.nodeid, 0.0) <= LIMIT]
    items[:] = sorted(quick, key=lambda item: seconds.get(item.nodeid, 0.0))


def _seconds() -> dict[str, float]:
    """How long each test takes; nothing before mutmut has measured it."""
    for path in (MEASURED, "mutants" / MEASURED):
        if path.exists():
            found: dict[str, float] = json.loads(path.read_text())["duration_by_test"]
            return found
    return {}
