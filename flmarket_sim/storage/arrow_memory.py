"""Bytes in memory of Arrow's own, for its decoders.

The threads of a decoder let go of what they have read, and some of them do so after the decoder has
returned. For an object of Python such a thread needs Python's lock. If the program is about to end
by then, Python ends the thread instead, and with it the process: "terminate called without an
active exception", after everything was done.
"""

from __future__ import annotations

import pyarrow as pa


def arrow_reader(content: bytes) -> pa.BufferReader:
    """A file with these bytes, of which Arrow has its own copy."""
    copy = pa.BufferOutputStream()
    copy.write(content)
    return pa.BufferReader(copy.getvalue())
