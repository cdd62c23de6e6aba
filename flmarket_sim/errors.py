"""Errors that are meant for the person at the keyboard.

Everything a user can get wrong raises one of these; the command line prints the message and no traceback.
"""

from collections.abc import Iterator
from contextlib import contextmanager


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


@contextmanager
def plugin_errors(kind: str, name: str) -> Iterator[None]:
    """Whatever goes wrong in a plug-in's own code is said to be its own; the cause stays attached."""
    try:
        yield
    except FlmarketError:
        raise
    except Exception as error:  # foreign code may fail in any way
        raise ContractError(f"{kind} {name!r} failed: {type(error).__name__}: {error}") from error
