"""Ways to damage a file: bytes, and trees of tables, lists and values. Everything comes from the `random.Random` that is given."""

from __future__ import annotations

import copy
import datetime
import math
import random
from typing import Any

NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 2, 255, 2**31, -(2**31), 2**32, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**9, 10**12, 10**400, -(10**400),
    16**6000, 0.0, -0.0, 5e-324, 1e-310, 2.2e-308, 1e-12, 0.5, 1.0, -1.5, 1e16, 1e154, 1e200, 1.7e308, -1.7e308, math.inf, -math.inf,
    math.nan,
)  # fmt: skip
TEXTS = (
    "", " ", "a", "none", "nan", "1", "x" * 5000, "\x00", "\x1b[31m", "../../../etc/passwd", "/dev/zero", "é", "日本", "\u202e", "😀",
    "<script>alert(1)</script>", "{0}%s$HOME`id`", "'; DROP TABLE bid; --", ":", "a:", ":b", "::", ".:x", "os:system", "os:getcwd",
    "subprocess:Popen", "builtins:eval", "builtins:exec", "threading:Thread", "pathlib:Path", "tempfile:TemporaryDirectory",
    "torch.nn:Linear", "no_such_module:X", "tests.fuzz.leaves:X", "flmarket_sim.auctions.all_in:AllIn", "all-in", "pay-as-bid",
    "m-regretnet", "seq-price", "opt-aggr", "uniform", "synthetic", "dirichlet", "lognormal", "coalition", "logistic", "rest-point",
)  # fmt: skip
OTHERS: tuple[Any, ...] = (
    True, False, [], {}, [[]], [{}], [0, 1], [1, 0], [math.nan, 1.0], [1e308, 1.7e308], [5e-324, 5e-324], ["a", 1], [1] * 300,
    datetime.date(2022, 1, 1), datetime.time(1, 2, 3), datetime.datetime(2022, 1, 1, 1, 2, 3),
)  # fmt: skip


def value(rng: random.Random) -> Any:
    """A value that somebody might not have thought of."""
    kind = rng.random()
    if kind < 0.5:
        return rng.choice(NUMBERS)
    if kind < 0.75:
        return rng.choice(TEXTS)
    if kind < 0.97:
        return copy.deepcopy(rng.choice(OTHERS))
    return nested(rng.choice([list, dict]), rng.choice([10, 90, 200]))


def nested(kind: type, depth: int) -> Any:
    found: Any = 1
    for _ in range(depth):
        found = [found] if kind is list else {"a": found}
    return found


def mutate_tree(tree: Any, rng: random.Random, others: list[Any], most: int = 3) -> Any:
    """The tree with one to `most` places changed; parts may come from the other trees."""
    for _ in range(rng.randint(1, most)):
        places = list(_places(tree))
        if not places:
            return value(rng)
        parent, key = rng.choice(places)
        donor = list(_places(rng.choice(others))) if others else []
        action = rng.random()
        if action < 0.45:
            parent[key] = value(rng)
        elif action < 0.55:
            del parent[key]
        elif action < 0.65 and donor:
            elsewhere, name = rng.choice(donor)
            parent[key] = copy.deepcopy(elsewhere[name])
        elif action < 0.75 and donor and isinstance(parent, dict):
            elsewhere, name = rng.choice(donor)
            parent[str(name)] = copy.deepcopy(elsewhere[name])
        elif action < 0.8 and isinstance(parent, dict):
            parent[_misspelt(str(key), rng)] = parent.pop(key)
        elif action < 0.85:
            parent[key] = [parent[key]] if rng.random() < 0.5 else {"name": parent[key]}
        elif action < 0.93 and isinstance(parent[key], list) and parent[key]:
            parent[key] = [
                copy.deepcopy(rng.choice(parent[key])) for _ in range(rng.choice([1, 2, 5, 50]))
            ]
        elif isinstance(parent[key], int | float) and not isinstance(parent[key], bool):
            parent[key] = _moved(parent[key], rng)
        else:
            parent[key] = value(rng)
    return tree


def mutate_bytes(data: bytes, rng: random.Random, others: list[bytes], most: int = 4) -> bytes:
    """Bits flipped, numbers written over, pieces cut, doubled, moved and taken from other files."""
    found = bytearray(data)
    for _ in range(rng.randint(1, most)):
        place = rng.randrange(len(found) + 1)
        if rng.random() < 0.3:  # the ends of a file say the most about it
            place = min(
                rng.choice([rng.randrange(64), max(0, len(found) - 1 - rng.randrange(600))]),
                len(found),
            )
        length = rng.choice([1, 1, 2, 4, 8, 16, 100, 1000])
        action = rng.randrange(9)
        if action == 0 and place < len(found):
            found[place] ^= 1 << rng.randrange(8)
        elif action == 1:
            found[place : place + 1] = bytes(
                [rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])]
            )
        elif action == 2:
            width = rng.choice([2, 4, 8])
            number = rng.choice(
                [
                    0,
                    1,
                    2 ** (8 * width) - 1,
                    2 ** (8 * width - 1),
                    2 ** (8 * width - 1) - 1,
                    rng.randrange(2**16),
                ]
            )
            found[place : place + width] = number.to_bytes(width, rng.choice(["little", "big"]))
        elif action == 3:
            del found[place : place + length]
        elif action == 4:
            found[place:place] = bytes(rng.randrange(256) for _ in range(min(length, 16)))
        elif action == 5:
            found[place:place] = found[place : place + length] * rng.choice([1, 1, 2, 20])
        elif action == 6 and others:
            other = rng.choice(others)
            start = rng.randrange(len(other) + 1)
            found[place : place + length] = other[start : start + length]
        elif action == 7:
            del found[place:]
        else:
            found[place : place + length] = bytes(min(length, max(0, len(found) - place)))
    return bytes(found)


def mutate_text(text: str, rng: random.Random, others: list[str]) -> str:
    """Lines and characters of a text changed, as a hand or a merge tool would."""
    lines = text.split("\n")
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(lines))
        action = rng.randrange(8)
        if action == 0:
            del lines[place : place + rng.choice([1, 1, 3])]
        elif action == 1:
            lines.insert(place, rng.choice(lines) if lines else "")
        elif action == 2:
            lines[place:place] = rng.choice(others).split("\n")[:: rng.choice([1, 2, 7])]
        elif action == 3 and lines[place:]:
            at = rng.randrange(len(lines[place]) + 1)
            token = rng.choice(
                [
                    "[",
                    "]",
                    "[[",
                    "=",
                    '"',
                    "'",
                    '"""',
                    "'''",
                    "{",
                    "}",
                    ".",
                    ",",
                    "#",
                    "\\",
                    "\x00",
                    "\t",
                    "é",
                    "0x",
                    "_",
                    "e",
                ]
            )
            lines[place] = (
                lines[place][:at] + token * rng.choice([1, 1, 2, 100, 3000]) + lines[place][at:]
            )
        elif action == 4:
            filler = rng.choice(
                ["[", "{", "[[", "a.", "{a=", " ", "\t", "9", "[a", "a="]
            ) * rng.choice([10, 300, 1000, 20000])
            lines.insert(
                place,
                rng.choice(["", "x = ", 'x = """\n', "["])
                + filler
                + rng.choice(["", "]", '\n"""', "b = 1", "b]"]),
            )
        elif action == 5 and lines[place:] and "=" in lines[place]:
            lines[place] = (
                lines[place].split("=")[0]
                + "= "
                + rng.choice(
                    [
                        "",
                        "nan",
                        "-inf",
                        "1e400",
                        "0x" + "f" * 5000,
                        "9" * 4000,
                        "2022-13-45",
                        "[1,",
                        "{a=1",
                        "'",
                        "1_0",
                        "+0",
                        "07:00:00",
                    ]
                )
            )
        elif action == 6 and lines[place:]:
            at = rng.randrange(len(lines[place]) + 1)
            lines[place] = lines[place][:at] + lines[place][at + 1 :]
        else:
            rng.shuffle(lines)
        lines = lines or [""]
    return "\n".join(lines)


def _places(tree: Any) -> Any:
    if isinstance(tree, dict):
        items: Any = list(tree.items())
    elif isinstance(tree, list):
        items = list(enumerate(tree))
    else:
        return
    for key, inner in items:
        yield tree, key
        yield from _places(inner)


def _misspelt(word: str, rng: random.Random) -> str:
    at = rng.randrange(len(word) + 1)
    return rng.choice(
        [
            word[:at] + word[at + 1 :],
            word[:at] + rng.choice("aeé_- .x") + word[at:],
            word.upper(),
            word + word,
        ]
    )


def _moved(number: int | float, rng: random.Random) -> int | float:
    try:
        factor = rng.choice([-1, 0, 1.0000001, 0.5, 2, 10, 1000, 10**9, 1e300, 1e-300])
        return (
            number * factor
            if isinstance(number, float) or isinstance(factor, int)
            else int(number * factor)
        )
    except OverflowError:
        return -number
