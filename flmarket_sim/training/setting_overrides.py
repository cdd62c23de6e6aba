"""Settings of a training that are changed by name: `gradient_clip=1.0`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import Any, TypeVar

import pydantic

from flmarket_sim.errors import InputError, did_you_mean, shown

OWN_OPTIONS = ("preset", "steps")  # the command line has options for them
S = TypeVar("S")


def with_overrides(settings: S, overrides: Iterable[str]) -> S:
    """The settings with `NAME=VALUE` changed; a value is written as in TOML, or `none`."""
    values: dict[str, Any] = asdict(settings)  # type: ignore[call-overload]
    names = [field.name for field in fields(settings) if field.name not in OWN_OPTIONS]  # type: ignore[arg-type]
    for override in overrides:
        name, equals, text = override.partition("=")
        if not equals or name not in names:
            hint = did_you_mean(name, names, f"; there are {', '.join(names)}")
            raise InputError(f"`setting` {shown(override)}: write NAME=VALUE{hint}")
        values[name] = None if text == "none" else _value(text)
    try:
        return pydantic.TypeAdapter(type(settings)).validate_python(values)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        raise InputError(f"`setting` {name}={shown(values[name])}: {first['msg']}") from None


def _value(text: str) -> Any:
    """A value as TOML writes it; anything else is a text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
