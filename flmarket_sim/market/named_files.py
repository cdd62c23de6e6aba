"""The files that a scenario names, by what they hold: weights of learned auctions, and plug-ins.

A scenario holds names only. Whoever must know whether two runs are of one mechanism (a run that
goes on, the key of a task) compares these hashes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from flmarket_sim.auctions.auction_name import AuctionName
from flmarket_sim.plugins.plugin_files import MODULE_TARGET, content_hash, source_of, texts_in

PLUGIN_GROUPS = "flmarket_sim."  # the entry-point groups of plug-ins begin so


def file_contents(data: Any) -> dict[str, str]:
    """A hash of each file that a text inside `data` names.

    A text names a file as a path, as module:Class, as path/to/file.py:Class, as the entry point of
    an installed package, or as an auction with weights or options (auctions/auction_name.py).
    """
    return {
        part: content_hash(path)
        for text in sorted(set(texts_in(data)))
        for part, path in _files_of(text)
    }


def _files_of(text: str) -> Iterator[tuple[str, Path]]:
    """The files that a text names, each with the part of the text that names it."""
    name = AuctionName.parse(text)
    for part in dict.fromkeys([text, name.name, name.weights or "", *name.option_texts]):
        path = source_of(_targets().get(part, part))
        if path is None and not MODULE_TARGET.fullmatch(part):
            try:
                path = Path(part) if Path(part).is_file() else None
            except (OSError, ValueError):  # a text that cannot be a path
                path = None
        if path is not None:
            yield part, path


@cache
def _targets() -> dict[str, str]:
    """The module:Class behind each name that an installed package adds."""
    found = entry_points()
    groups = [group for group in found.groups if group.startswith(PLUGIN_GROUPS)]
    return {point.name: point.value for group in groups for point in found.select(group=group)}
