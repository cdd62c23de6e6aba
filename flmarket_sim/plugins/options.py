"""The options of a plug-in, read from the signature of its constructor."""

from __future__ import annotations

import inspect
from typing import Any

import pydantic

from flmarket_sim.errors import InputError


def chosen(checked: pydantic.BaseModel) -> dict[str, Any]:
    """The options that were given, converted to their types."""
    return {key: getattr(checked, key) for key in checked.model_fields_set}


def options_model(cls: Any, skip: int = 0) -> type[pydantic.BaseModel]:
    """A pydantic model of a constructor's options, without its first `skip` parameters.

    It refuses unknown options.
    """
    try:
        return _options_model(cls, skip)
    except Exception as error:  # an unreadable signature or annotation
        raise InputError(
            f"the options of {cls.__name__} cannot be read from its constructor: {error}"
        ) from error


def _options_model(cls: Any, skip: int) -> type[pydantic.BaseModel]:
    fields: dict[str, Any] = {}
    parameters = (
        [] if cls.__init__ is object.__init__ else list(_signature(cls).parameters.values())
    )
    for parameter in parameters[skip:]:
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        unknown = parameter.annotation is parameter.empty or isinstance(parameter.annotation, str)
        annotation = Any if unknown else parameter.annotation
        fields[parameter.name] = (
            annotation,
            ... if parameter.default is parameter.empty else parameter.default,
        )
    config = pydantic.ConfigDict(
        extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False, protected_namespaces=()
    )
    return pydantic.create_model(f"{cls.__name__}Options", __config__=config, **fields)


def _signature(cls: Any) -> inspect.Signature:
    try:
        return inspect.signature(cls, eval_str=True)
    except NameError:  # annotations that exist for type checkers only
        return inspect.signature(cls)
