"""Errors that are meant for the person at the keyboard.

Everything a user can get wrong raises one of these; the command line prints the message and no traceback.
"""

import difflib
import reprlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class FlmarketError(Exception):
    """Something went wrong that the message explains. Exit code 1."""


class InputError(FlmarketError):
    """What the user gave is wrong: a name, a number, a file. Exit code 2."""


class ScenarioError(InputError):
    """A scenario file with everything that is wrong in it."""


class DataError(FlmarketError):
    """A data set that is missing, damaged or too small for what was asked."""


class ContractError(FlmarketError):
    """A plug-in broke the contract of its kind (shapes, signs, budgets)."""


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 120
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = 20
LONGEST = 2_000  # characters of one value, or of one reason, in a message


def shown(value: Any) -> str:
    """A value in a message: as Python writes it, but never pages of it, whatever a file holds."""
    if isinstance(value, int) and value.bit_length() > 400:
        return f"a number of {value.bit_length()} bits"
    return shortened(_SHORT.repr(value))


def shortened(text: str) -> str:
    """A reason that somebody else's code gave, cut where it becomes endless."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text):,} characters)"


def did_you_mean(name: str, allowed: Iterable[str], otherwise: str = "") -> str:
    """The end of a message about an unknown name: the allowed name that is most like it."""
    near = difflib.get_close_matches(name[:100], list(allowed), 1)
    return f"; did you mean {near[0]!r}?" if near else otherwise


@contextmanager
def plugin_errors(kind: str, name: str) -> Iterator[None]:
    """Whatever goes wrong in a plug-in's own code is said to be its own; the cause stays attached."""
    try:
        yield
    except FlmarketError:
        raise
    except Exception as error:  # foreign code may fail in any way
        raise ContractError(f"{kind} {name!r} failed: {type(error).__name__}: {error}") from error
