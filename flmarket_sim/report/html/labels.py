"""Labels of inputs that are compared: the settings in which they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

MOST = 3  # settings in a label
LAST = ("name", "description", "study.name")  # they name an input where no other setting differs
FIRST = ("auction.name", "aggregation.name", "perturbation.name", "model.name", "data.name", "seed")


def labels_by_difference(settings: Sequence[dict[str, str]], folders: Sequence[str]) -> list[str]:
    """A label for each input, such as "auction all-in, seed 3".

    `settings` are dotted paths with their values. Inputs that the settings do not tell apart have
    the name of their folder, too; inputs without any difference have only that, and a number where
    folders have one name.
    """
    differing = _differing(settings)
    labels = []
    for one, folder in zip(settings, folders, strict=True):
        parts = [f"{_words(path)} {one[path]}".strip() for path in differing if one.get(path)]
        labels.append(", ".join(parts[:MOST]) or folder)
    seen = Counter(labels)
    labels = [
        label if seen[label] == 1 or label == folder else f"{label} ({folder})"
        for label, folder in zip(labels, folders, strict=True)
    ]
    return _numbered(labels)


def _differing(settings: Sequence[dict[str, str]]) -> list[str]:
    """The paths whose values differ, those that people compare first."""
    paths = dict.fromkeys(path for one in settings for path in one)
    found = [path for path in paths if len({one.get(path, "") for one in settings}) > 1]
    telling = [path for path in found if path not in LAST] or found
    return sorted(telling, key=lambda path: FIRST.index(path) if path in FIRST else len(FIRST))


def _words(path: str) -> str:
    """A dotted path as words: "auction.name" is "auction", "budget.factor" is "budget factor"."""
    if path in LAST:
        return ""
    return path.removesuffix(".name").replace(".", " ").replace("_", " ")


def _numbered(labels: list[str]) -> list[str]:
    seen: Counter[str] = Counter()
    distinct = []
    for label in labels:
        seen[label] += 1
        distinct.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return distinct
