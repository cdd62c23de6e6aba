"""Where foreign code failed: the lines of the author's own files, without ours and Python's.

A plug-in can fail in any way. The message about it has the exception and, below it, where in the
author's code it happened:

    auction 'lottery' failed: ValueError: operands could not be broadcast together
        lottery.py:17 in decide
            sells = asked & (offer >= bids.full_value[:, 1:])

The variable FLMARKET_TRACEBACK shows the whole traceback.
"""

from __future__ import annotations

import os
import sysconfig
import traceback
from pathlib import Path

WHOLE = "FLMARKET_TRACEBACK"  # any text in this variable asks for whole tracebacks
LONGEST_LINE = 160  # characters of a line of source
LONGEST_REASON = 2_000  # characters of an exception's message
FIRST, LAST = 2, 6  # frames that are shown of a long chain, at its two ends
OURS = str(Path(__file__).resolve().parent)
LIBRARIES = tuple(
    {
        str(Path(place).resolve())
        for key in ("stdlib", "platstdlib", "purelib", "platlib")
        if (place := sysconfig.get_path(key))
    }
)


def described(error: BaseException) -> str:
    """An exception of foreign code: its type, its message, and the author's frames."""
    try:
        reason = str(error).strip()
    except Exception:  # a foreign exception may not even have a text
        reason = "its text cannot be made"
    if isinstance(error, SyntaxError) and error.filename:
        reason = error.msg
    if len(reason) > LONGEST_REASON:
        reason = f"{reason[:LONGEST_REASON]}... ({len(reason):,} characters)"
    colon = ": " if reason else ""
    return f"{type(error).__name__}{colon}{reason}{author_frames(error)}"


def author_frames(error: BaseException) -> str:
    """The frames of the traceback that are in the author's files, each on lines of its own.

    It is empty if there are none, and begins with a new line otherwise.
    """
    known = traceback.TracebackException.from_exception(error, lookup_lines=False)
    frames = [frame for frame in known.stack if is_authors(frame.filename)]
    parts = [_shown(frame.filename, frame.lineno, frame.line, frame.name) for frame in frames]
    if len(parts) > FIRST + LAST:
        left_out = f"\n        ({len(parts) - FIRST - LAST} more)"
        parts = [*parts[:FIRST], left_out, *parts[-LAST:]]
    if isinstance(error, SyntaxError) and error.filename and is_authors(error.filename):
        parts.append(_shown(error.filename, error.lineno, error.text, None))
    return "".join(parts)


def add_author_frames(error: Exception) -> None:
    """Adds the author's frames to one of our own errors that her code has caused.

    An error that she raises herself explains itself, and stays as it is.
    """
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    frames = author_frames(error)
    raised_by_author = last is not None and is_authors(last.tb_frame.f_code.co_filename)
    if frames and not raised_by_author and frames not in str(error):
        error.args = (f"{error}{frames}",)


def failure_text(error: BaseException, own: bool) -> str:
    """The text of a failure that leaves its process without its traceback.

    `own` says that the error's message explains it already.
    """
    text = str(error) if own else described(error)
    if whole_wanted():
        text += "\n" + "".join(traceback.format_exception(error))
    return text


def whole_wanted() -> bool:
    """Whether the user asks for whole tracebacks."""
    return bool(os.environ.get(WHOLE))


def is_authors(filename: str) -> bool:
    """Whether a frame's file is neither ours nor of Python or an installed package."""
    if filename.startswith("<frozen "):
        return False
    if filename.startswith("<"):  # a cell of a notebook, or `python -c`
        return True
    place = str(Path(filename).resolve())
    inside = (place.startswith(folder + os.sep) for folder in (OURS, *LIBRARIES))
    return not any(inside)


def _shown(filename: str, line: int | None, source: str | None, function: str | None) -> str:
    at = f"{_short_path(filename)}:{line or '?'}"
    where = at if function in (None, "<module>") else f"{at} in {function}"
    text = (source or "").strip()
    if len(text) > LONGEST_LINE:
        text = text[:LONGEST_LINE] + "..."
    return f"\n    {where}" + (f"\n        {text}" if text else "")


def _short_path(filename: str) -> str:
    """The path from the working directory, where the file is below it."""
    try:
        return str(Path(filename).resolve().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return filename
