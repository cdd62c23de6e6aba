"""Plug-ins of one kind, found by a built-in name, an entry point, `module:Class` or
`path/to/file.py:Class`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any

import pydantic

from flmarket_sim.author_frames import add_author_frames, described
from flmarket_sim.errors import InputError, did_you_mean, shown
from flmarket_sim.plugins.options import chosen, options_model
from flmarket_sim.plugins.plugin_files import attribute_of


class PluginKind:
    """Plug-ins of one kind by name.

    `builtin` maps names to "module:Class", imported on first use. Packages add their own through
    the entry-point group `group`. A name with a colon is itself a `module:Class` or a
    `path/to/file.py:Class`. `needs` are the attributes that a class of this kind must have. A class
    is built as Class(*facts, **options), where the first `facts` arguments are not options: a
    scenario does not name them. `unfit` has names that people may expect, each with the reason why
    there is no such plug-in.
    """

    def __init__(
        self,
        kind: str,
        builtin: dict[str, str],
        group: str,
        needs: tuple[str, ...] = (),
        facts: int = 0,
        unfit: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.kind = kind
        self.needs, self.facts, self.unfit = needs, facts, unfit
        self._targets = dict(builtin)
        self._classes: dict[str, Any] = {}
        self._group = group
        self._entry_points_read = False

    def names(self) -> list[str]:
        self._read_entry_points()
        return sorted(self._targets.keys() | self._classes.keys())

    def register(self, cls: Any) -> Any:
        """Adds a class under its `name`; usable as a decorator. A name that is taken is refused."""
        require_contract(cls, getattr(cls, "__name__", cls), self.kind, ("name", *self.needs))
        name: str = cls.name
        known = self._classes.get(name)
        if name in self._targets or (known is not None and known is not cls):
            raise InputError(f"{self.kind} {name!r} is registered already")
        self._classes[name] = cls
        return cls

    @contextmanager
    def lent(self, make: Callable[[], Any], name: str) -> Iterator[str]:
        """Makes an object of this process known by a name for as long as the block lasts.

        `make` returns it. Where the name is taken, a number follows it; the block gets the result.
        """
        free, number = name, 1
        while free in self._targets or free in self._classes or free in self.names():
            number += 1
            free = f"{name}-{number}"
        self._classes[free] = make
        try:
            yield free
        finally:
            del self._classes[free]

    def get(self, name: str) -> Any:
        """The class of this name, imported on first use."""
        if name in self._classes:
            return self._classes[name]
        if ":" not in name and name not in self._targets:
            self._read_entry_points()
        target = self._targets.get(name, name if ":" in name else None)
        if target is None:
            raise InputError(self.unknown(name))
        cls = load(target, self.kind, self.needs)
        if name in self._targets:  # a module:Class stays nameless
            self._classes[name] = cls
        return cls

    def create(self, name: str, **options: Any) -> Any:
        """An instance, its options checked against the constructor's signature."""
        cls = self.get(name)
        model = options_model(cls)
        try:
            checked = model.model_validate(options)
        except pydantic.ValidationError as error:
            wrong = "; ".join(
                _option_error(one, list(model.model_fields)) for one in error.errors()
            )
            allowed = ", ".join(model.model_fields) or "none"
            raise InputError(f"{self.kind} {name!r}: {wrong} (options: {allowed})") from None
        return self.construct(name, cls, chosen(checked))

    def construct(self, name: str, cls: Any, options: dict[str, Any]) -> Any:
        """The class called with options; an exception of its constructor becomes an InputError."""
        try:
            return cls(**options)
        except InputError as error:
            add_author_frames(error)
            raise
        except Exception as error:  # foreign code may fail in any way
            raise InputError(f"{self.kind} {name!r} cannot be made: {described(error)}") from error

    def unknown(self, name: str) -> str:
        """The message about a name that no plug-in of this kind has."""
        if name in self.unfit:
            return f"{self.kind} {name!r} is of no use here: {self.unfit[name]}"
        hint, known = did_you_mean(name, self.names(), "."), ", ".join(self.names())
        if name.endswith(".py"):
            return f"{self.kind} {shown(name)}: name the class in the file, too: {name}:Class"
        return (
            f"unknown {self.kind} {shown(name)}{hint} Known: {known}, or "
            "'module:Class', or 'path/to/file.py:Class'"
        )

    def describe(self, name: str) -> str:
        """The first sentence of the plug-in's docstring."""
        paragraph = " ".join((inspect.getdoc(self.get(name)) or "").split("\n\n", 1)[0].split())
        return re.split(r"(?<=\.)\s+(?=[A-Z])", paragraph, maxsplit=1)[0]

    def _read_entry_points(self) -> None:
        if self._entry_points_read:
            return
        self._entry_points_read = True
        for point in entry_points(group=self._group):
            self._targets.setdefault(point.name, point.value)


def _option_error(error: Any, allowed: list[str]) -> str:
    """What is wrong with one option, in our words."""
    name = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        return f"there is no option {name!r}{did_you_mean(name, allowed)}"
    if error["type"] == "missing":
        return f"{name} is missing"
    return f"{name}: {error['msg']} (got {shown(error['input'])})"


def load(target: str, kind: str, needs: tuple[str, ...] = ()) -> Any:
    """Imports `module:Class` or `path/to/file.py:Class`; refuses what is missing or unfit."""
    cls = attribute_of(target, f"{kind} {shown(target)}")
    require_contract(cls, target, kind, needs)
    return cls


def require_contract(cls: Any, name: object, kind: str, needs: tuple[str, ...]) -> None:
    """Refuses what is not a class with the attributes of its kind."""
    missing = [need for need in needs if not hasattr(cls, need)]
    if not isinstance(cls, type):
        reason = "it is not a class"
    elif missing:
        reason = f"it has no {' and no '.join(missing)}"
    elif "name" in needs and not (isinstance(cls.name, str) and cls.name):  # type: ignore[attr-defined]
        reason = "its `name` is not text"
    else:
        return
    raise InputError(f"{str(name)!r} is not a kind of {kind}: {reason}")
