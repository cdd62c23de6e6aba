"""A pytest plug-in for `make mutants`.

mutmut 3.8 reads a private attribute that pytest 9.2 does not have any more.
"""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item._nodeid = item.nodeid  # type: ignore[attr-defined]
