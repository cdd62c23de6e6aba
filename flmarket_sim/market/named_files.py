"""The files that a scenario names, by what they hold: weights of learned auctions, and plug-ins.

A scenario holds names only. Whoever must know whether two runs are of one mechanism (a run that
goes on, the key of a task) compares these hashes. Weights that come with this package count as
other weights do: a file can be replaced while the version stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from flmarket_sim.auctions.auction_name import AuctionName
from flmarket_sim.auctions.learned.weight_names import shipped_file
from flmarket_sim.errors import InputError
from flmarket_sim.plugins.plugin_files import MODULE_TARGET, source_of, texts_in
from flmarket_sim.plugins.plugin_imports import imported_files
from flmarket_sim.storage.sealed_files import file_hash

PLUGIN_GROUPS = "flmarket_sim."  # the entry-point groups of plug-ins begin so


def file_contents(data: Any) -> dict[str, str]:
    """A hash of each file that `data` names, and of each module that such a file imports.

    A text names a file as a path, as module:Class, as path/to/file.py:Class, as the entry point of
    an installed package, or as an auction with weights or options (auctions/auction_name.py). An
    auction that names no weights is of its default ones.
    """
    files = dict(_shipped_weights(data))
    for text in sorted(set(texts_in(data))):
        files |= dict(_files_of(text))
    return {name: file_hash(path) for name, path in files.items()}


def _shipped_weights(data: Any) -> Iterator[tuple[str, Path]]:
    """The shipped weights of the auctions in `data`, by names that no machine changes."""
    table: dict[str, Any] = {}
    inside: list[Any] = []
    if isinstance(data, str):
        table = _auction_table(data)
    elif isinstance(data, dict):
        options = {key: value for key, value in data.items() if key != "name"}
        table, inside = _auction_table(str(data.get("name"))) | options, list(options.values())
    elif isinstance(data, list | tuple):
        inside = list(data)
    if (found := shipped_file(table)) is not None:
        yield found
    for value in inside:
        yield from _shipped_weights(value)


def _auction_table(text: str) -> dict[str, Any]:
    """A text as the table of an auction; empty if its options cannot be read."""
    try:
        return AuctionName.parse(text).table
    except InputError:
        return {}


def _files_of(text: str) -> Iterator[tuple[str, Path]]:
    """The files that a text names, each with the part of the text that names it."""
    name = AuctionName.parse(text)
    for part in dict.fromkeys([text, name.name, name.weights or "", *name.option_texts]):
        path = code = source_of(_targets().get(part, part))
        if path is None and not MODULE_TARGET.fullmatch(part):
            try:
                path = Path(part) if Path(part).is_file() else None
            except (OSError, ValueError):  # a text that cannot be a path
                path = None
        if path is not None:
            yield part, path
        if code is not None:
            for module, file in imported_files(code).items():
                yield f"{module}, which {part} imports", file


@cache
def _targets() -> dict[str, str]:
    """The module:Class behind each name that an installed package adds."""
    found = entry_points()
    groups = [group for group in found.groups if group.startswith(PLUGIN_GROUPS)]
    return {point.name: point.value for group in groups for point in found.select(group=group)}
