"""Rooms that are also functions: `fm.report(run)`, `fm.sweep("quickstart")` and `fm.league()`.

The names of some calls are those of rooms of the package. Python sets the name of a room to its
module when anything in it is imported, so these modules can be called themselves.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class CallableRoom(ModuleType):
    """A module that passes a call on to a function of another module, imported at the call."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.called()(*arguments, **options)

    def called(self) -> Any:
        """The function that a call is passed on to."""
        module, _, name = str(vars(self)["_called"]).partition(":")
        return getattr(import_module(module), name)

    @property
    def __signature__(self) -> Any:
        from inspect import signature

        return signature(self.called())


def call(room: str, function: str) -> None:
    """Makes calls of a room go to a function, "module:name"."""
    module = sys.modules[room]
    module.__class__ = CallableRoom
    vars(module)["_called"] = function
