"""cvxpy, imported on first use: the import takes a second, and most runs need no solver."""

from __future__ import annotations

import importlib
from typing import Any


def cvxpy() -> Any:
    """The module. It is untyped here, because most of its functions are unknown to type checkers."""
    return importlib.import_module("cvxpy")
