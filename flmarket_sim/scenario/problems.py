"""One thing that is wrong with a scenario, and a paragraph about all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from flmarket_sim.errors import ScenarioError, shortened
from flmarket_sim.scenario.toml_lines import Key, PathKeys, prefixes

DEEPEST = 100  # tables in tables: a scenario has four
MOST_LINES = 50  # of a message


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, and its place."""

    path: PathKeys
    message: str

    def line(self, lines: dict[PathKeys, int]) -> int:
        """Its line, or that of the nearest table around it; 0 if the file does not contain it."""
        return next((lines[p] for p in prefixes(self.path) if p in lines), 0)

    def describe(self, source: str, lines: dict[PathKeys, int]) -> str:
        """The problem with its file, line and path."""
        line = self.line(lines)
        where = f"{source}:{line}" if line else source
        return (
            f"{where}: {dotted(self.path)}: {self.message}"
            if self.path
            else f"{where}: {self.message}"
        )


def describe_problems(problems: list[Problem], source: str, lines: dict[PathKeys, int]) -> str:
    """A paragraph with a line for every problem, in the order of the file."""
    ordered = sorted(problems, key=lambda problem: problem.line(lines))
    unique = list(dict.fromkeys(shortened(p.describe(source, lines)) for p in ordered))
    count = f"{len(unique)} error{'s' if len(unique) > 1 else ''}"
    listed = [f"  {line}" for line in unique[:MOST_LINES]]
    if sum(map(len, listed)) > MOST_LINES * 200:  # a few very long lines are enough
        listed = listed[:4]
    rest = [f"  and {len(unique) - len(listed)} more"] if len(listed) < len(unique) else []
    return f"{count} in {source}\n" + "\n".join(listed + rest)


def dotted(path: PathKeys) -> str:
    """A path as a person writes it: `buyers[0].auction`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")


def values(data: Any, source: str) -> Iterator[tuple[PathKeys, Any]]:
    """Every value that is neither a table nor a list, with its path."""
    level: list[tuple[PathKeys, Any]] = [((), data)]
    for _ in range(DEEPEST):
        inner = [((*path, key), one) for path, part in level for key, one in _entries(part)]
        yield from (pair for pair in inner if not isinstance(pair[1], dict | list))
        level = [pair for pair in inner if isinstance(pair[1], dict | list)]
        if not level:
            return
    raise ScenarioError(f"{source} has tables or lists more than {DEEPEST} deep inside each other")


def _entries(part: dict[str, Any] | list[Any]) -> Iterable[tuple[Key, Any]]:
    return part.items() if isinstance(part, dict) else enumerate(part)
