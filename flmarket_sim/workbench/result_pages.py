"""Results as the workbench shows them: the cards, charts and tables of report pages, as data."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

from flmarket_sim.errors import FlmarketError, InputError, shortened
from flmarket_sim.report.html import compare, page, sources
from flmarket_sim.workbench.inside import result_path

KEPT = 12  # pages in memory
MOST_COMPARED = 12
Stamp = tuple[tuple[str, int, int], ...]


class ResultPages:
    """Pages of one folder. A page is made again when a file of its results has changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._pages: OrderedDict[tuple[str, ...], tuple[list[Stamp], dict[str, Any]]] = (
            OrderedDict()
        )
        self._lock = threading.Lock()

    def page(self, names: list[str]) -> dict[str, Any]:
        """The page of one result, or a comparison of several."""
        if not names:
            raise InputError("name a result")
        if len(names) > MOST_COMPARED:
            raise InputError(f"at most {MOST_COMPARED} results fit beside each other")
        paths = [result_path(self.folder, name) for name in dict.fromkeys(names)]
        key, stamps = tuple(names), [_stamp(path) for path in paths]
        with self._lock:
            known = self._pages.get(key)
            if known is None or known[0] != stamps:
                known = (stamps, _made(paths))
                self._pages[key] = known
                while len(self._pages) > KEPT:
                    self._pages.popitem(last=False)
            self._pages.move_to_end(key)
        return known[1]


def _made(paths: list[Path]) -> dict[str, Any]:
    try:
        return page.content(compare.labelled([sources.read(path) for path in paths]))
    except FlmarketError:
        raise
    except Exception as error:  # a directory that was put there may hold anything
        what = shortened(f"{type(error).__name__}: {error}")
        raise InputError(
            f"{', '.join(path.name for path in paths)} cannot be shown: a file there is damaged, "
            f"or of another version ({what})"
        ) from error


def _stamp(path: Path) -> Stamp:
    """Names, times and sizes of the files of a result, as far as they tell that it has changed."""
    if path.is_file():
        return (_file(path),)
    with os.scandir(path) as entries:
        top = [Path(entry.path) for entry in entries if entry.is_file()]
    journals = [file for file in path.glob("events/*") if file.is_file()]
    return tuple(sorted(_file(file) for file in (*top, *journals)))


def _file(path: Path) -> tuple[str, int, int]:
    try:
        stat = path.stat()
    except OSError:
        return path.name, 0, 0
    return path.name, stat.st_mtime_ns, stat.st_size
