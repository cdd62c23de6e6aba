"""A hint for the nearest option, where somebody mistyped one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

OVERRIDE = "--set"


@contextmanager
def hints() -> Iterator[None]:
    """Ends the error about an unknown option with the option that was probably meant."""
    try:
        yield
    except Exception as error:
        wrong = getattr(error, "option_name", None)
        if wrong is not None and hasattr(error, "possibilities"):
            error.message = f"No such option: {wrong}{_hint(wrong, getattr(error, 'ctx', None))}"  # type: ignore[attr-defined]
            error.possibilities = None
        raise


def _hint(wrong: str, context: Any) -> str:
    """The end of the error: the nearest long option of the command, or another way."""
    if context is None:
        return ""
    parameters = context.command.get_params(context)
    names = {name for option in parameters for name in option.opts if name.startswith("--")}
    near = get_close_matches(wrong.lstrip("-"), sorted(name[2:] for name in names), 1)
    if near:
        return f"; did you mean --{near[0]}?"
    if OVERRIDE in names:
        return f"; a setting of the scenario is changed by {OVERRIDE} {wrong.lstrip('-')}=VALUE"
    if context.parent is None:
        return "; options of a command come after its name"
    return ""
