"""Ways to damage a folder of results. Each changes bytes on the disk, and names what it changed."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from flmarket_sim.eventlog.view_numbers import KEY_FILE


class Damage(NamedTuple):
    """What was done, and to which files of the folder."""

    what: str
    files: list[Path]


Way = Callable[[Path, Path, random.Random], Damage | None]  # folder, its twin, chance


def damage(folder: Path, twin: Path, chance: random.Random) -> Damage:
    """Damages a folder in a way that it allows."""
    while True:
        done = chance.choice(WAYS)(folder, twin, chance)
        if done is not None:
            return done


def files_in(folder: Path) -> list[Path]:
    """The files that hold something."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size]


def one_bit(folder: Path, twin: Path, chance: random.Random) -> Damage:
    path, content, place = _byte(folder, chance)
    bit = chance.randrange(8)
    content[place] ^= 1 << bit
    path.write_bytes(content)
    return Damage(f"bit {bit} of byte {place} flipped", [path])


def one_byte(folder: Path, twin: Path, chance: random.Random) -> Damage:
    path, content, place = _byte(folder, chance)
    content[place] = chance.choice([value for value in range(256) if value != content[place]])
    path.write_bytes(content)
    return Damage(f"byte {place} is now {content[place]}", [path])


def zeros(folder: Path, twin: Path, chance: random.Random) -> Damage | None:
    path, content, place = _byte(folder, chance)
    run = bytes(len(content[place : place + chance.choice([2, 16, 512, 4096])]))
    if content[place : place + len(run)] == run:
        return None
    content[place : place + len(run)] = run
    path.write_bytes(content)
    return Damage(f"{len(run)} bytes from {place} on are zero", [path])


def truncation(folder: Path, twin: Path, chance: random.Random) -> Damage:
    path, content, place = _byte(folder, chance)
    path.write_bytes(content[:place])
    return Damage(f"cut after {place} of {len(content)} bytes", [path])


def two_swapped(folder: Path, twin: Path, chance: random.Random) -> Damage | None:
    """Two files of a folder that have the same suffix."""
    path = chance.choice(files_in(folder))
    others = [
        other
        for other in files_in(folder)
        if other.suffix == path.suffix and other.read_bytes() != path.read_bytes()
    ]
    if not others:
        return None
    other = chance.choice(others)
    first, second = path.read_bytes(), other.read_bytes()
    path.write_bytes(second)
    other.write_bytes(first)
    return Damage("two files swapped", [path, other])


def foreign(folder: Path, twin: Path, chance: random.Random) -> Damage | None:
    """The file of the same name in another result."""
    path = chance.choice(files_in(folder))
    other = twin / path.relative_to(folder)
    if not other.exists() or other.read_bytes() == path.read_bytes():
        return None
    shutil.copyfile(other, path)
    return Damage("the file of another result in its place", [path])


def deletion(folder: Path, twin: Path, chance: random.Random) -> Damage | None:
    """A file, but not the secret of views: whoever deletes it asks for new numbers."""
    path = chance.choice(files_in(folder))
    if path.name == KEY_FILE:
        return None
    path.unlink()
    return Damage("a file deleted", [path])


def kind_deleted(folder: Path, twin: Path, chance: random.Random) -> Damage | None:
    kinds = sorted(path for path in folder.rglob("kind=*") if path.is_dir())
    if not kinds:
        return None
    kind = chance.choice(kinds)
    gone = files_in(kind)
    shutil.rmtree(kind)
    return Damage(f"all events of {kind.name} deleted", [kind, *gone])


def line_deleted(folder: Path, twin: Path, chance: random.Random) -> Damage | None:
    return _lines(folder, chance, 0)


def line_doubled(folder: Path, twin: Path, chance: random.Random) -> Damage | None:
    return _lines(folder, chance, 2)


WAYS: tuple[Way, ...] = (
    one_bit,
    one_byte,
    zeros,
    truncation,
    two_swapped,
    foreign,
    deletion,
    kind_deleted,
    line_deleted,
    line_doubled,
)


def _byte(folder: Path, chance: random.Random) -> tuple[Path, bytearray, int]:
    """A file, its content, and a place in it."""
    path = chance.choice(files_in(folder))
    content = bytearray(path.read_bytes())
    return path, content, chance.randrange(len(content))


def _lines(folder: Path, chance: random.Random, times: int) -> Damage | None:
    """A line of a .jsonl file, so many times."""
    found = [path for path in files_in(folder) if path.suffix == ".jsonl"]
    if not found:
        return None
    path = chance.choice(found)
    lines = path.read_bytes().splitlines(keepends=True)
    place = chance.randrange(len(lines))
    lines[place : place + 1] = [lines[place]] * times
    path.write_bytes(b"".join(lines))
    return Damage(f"line {place + 1} {'doubled' if times else 'deleted'}", [path])
