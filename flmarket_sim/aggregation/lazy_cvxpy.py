"""cvxpy, imported on first use: the import takes a second, and most runs need no solver."""

from __future__ import annotations

import importlib
from typing import Any


def cvxpy() -> Any:
    """The module, untyped: its own annotations leave out most of its functions."""
    return importlib.import_module("cvxpy")
