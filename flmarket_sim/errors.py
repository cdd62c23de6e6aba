"""Errors that are meant for the person at the keyboard.

Every mistake of a user raises one of these. The command line prints the message without a
traceback.
"""

import difflib
import re
import reprlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from flmarket_sim.author_frames import add_author_frames, described


class FlmarketError(Exception):
    """A failure that the message explains. Exit code 1."""


class Interrupted(FlmarketError):
    """Somebody stopped the work; the message says what is left of it. Exit code 130."""


class InputError(FlmarketError):
    """A wrong name, number or file. Exit code 2."""


class ScenarioError(InputError):
    """Everything that is wrong with a scenario."""


class DataError(FlmarketError):
    """A data set that is missing, damaged or too small."""


class ContractError(FlmarketError):
    """A plug-in broke the contract of its kind (shapes, signs, budgets)."""


class FlmarketWarning(UserWarning):
    """Something that a person should know and that stops nothing."""


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 120
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = 20
LONGEST = 2_000  # characters of one value or one reason in a message


def shown(value: Any) -> str:
    """A value in a message: its repr, cut to a length that a person reads."""
    if isinstance(value, int) and value.bit_length() > 400:
        return f"a number of {value.bit_length()} bits"
    return shortened(_SHORT.repr(value))


def shortened(text: str) -> str:
    """A text of unknown origin, cut to a length that a person reads."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text):,} characters)"


STEERING = (
    re.compile(  # what moves the cursor, sets colours, turns or hides text; not tab, new line
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
        "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
    )
)


def printable(text: str) -> str:
    """A text of unknown origin for a terminal: what would steer the terminal is escaped.

    Tabs and new lines stay; `one_line` escapes them too.
    """
    return STEERING.sub(_escaped, text)


def one_line(text: str) -> str:
    """The same for a name or a cell: whatever it holds, it takes one line."""
    return re.sub("[\t\n]", _escaped, printable(text))


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def did_you_mean(name: str, allowed: Iterable[str], otherwise: str = "") -> str:
    """The end of a message about an unknown name: the allowed name that is most like it.

    Names that differ in capital letters only are alike.
    """
    known = list(allowed)
    near = [one for one in known if one.lower() == name.lower()]
    near = near or difflib.get_close_matches(name[:100], known, 1)
    return f"; did you mean {near[0]!r}?" if near else otherwise


@contextmanager
def plugin_errors(kind: str, name: str) -> Iterator[None]:
    """Turns every exception of a plug-in's code into a ContractError that names the plug-in.

    The message ends with the frames of the author's own files.
    """
    try:
        yield
    except FlmarketError as error:
        add_author_frames(error)
        raise
    except Exception as error:  # foreign code may fail in any way
        raise ContractError(f"{kind} {name!r} failed: {described(error)}") from error
