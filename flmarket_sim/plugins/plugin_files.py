"""Code that a name leads to: `module:Class`, or `path/to/file.py:Class`.

A path is relative to the working directory. Python does not look for modules there when a program
is started by its name, so the working directory, and the folder of a named file, come last in
`sys.path` as soon as a plug-in is named: they never hide an installed module.

A file is imported once in a process, under the name that it would have in an import statement. So
`lottery.py:Lottery` and `lottery:Lottery` are one class, its objects can be pickled, and a file of
a package can use relative imports. If another module has that name, a hash of the path follows it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from flmarket_sim.author_frames import described
from flmarket_sim.errors import InputError, did_you_mean, shown
from flmarket_sim.plugins.foreign_code import policy

FILE_TARGET = re.compile(r"(?P<path>.+\.py):(?P<attribute>[A-Za-z_]\w*)", re.DOTALL)
MODULE_TARGET = re.compile(r"(?P<module>[A-Za-z_][\w.]*):[A-Za-z_]\w*")
_imported: dict[Path, ModuleType] = {}
_places: dict[str, Path] = {}  # where files are that a stored scenario names


def attribute_of(target: str, what: str) -> Any:
    """What `module:Class` or `path/to/file.py:Class` names; `what` begins the messages.

    This imports the module or the file, and so runs it, unless foreign code is not allowed.
    """
    policy.announce(target, what)
    place, _, attribute = target.rpartition(":")
    try:
        module = file_module(place) if place.endswith(".py") else _module(place)
        found = getattr(module, attribute, None)
    except InputError as error:
        raise InputError(f"{what}: {error}") from error.__cause__
    except (Exception, SystemExit) as error:  # foreign code may fail in any way
        kind = "file" if place.endswith(".py") else "module"
        raise InputError(
            f"{what}: {kind} {shown(place)} cannot be imported: {described(error)}{_advice(place)}"
        ) from error
    if found is None:
        kind = "file" if place.endswith(".py") else "module"
        hint = did_you_mean(attribute, dir(module))
        raise InputError(f"{what}: {kind} {place!r} has no {shown(attribute)}{hint}")
    return found


def file_module(path: str) -> ModuleType:
    """The module of a file, imported on first use."""
    file = place_of(path)
    if not file.is_file():
        raise InputError(
            f"there is no file {shown(path)}: paths are relative to the working directory, here "
            f"{Path.cwd()}"
        )
    if file not in _imported:
        _imported[file] = _already_imported(file) or _import_file(file)
    return _imported[file]


def place_of(path: str) -> Path:
    """The absolute path of a file that a name contains."""
    known = _places.get(path)
    try:
        return Path(path).expanduser().resolve() if known is None else known
    except (OSError, ValueError, RuntimeError) as error:  # a NUL, a loop of links, no such user
        raise InputError(f"{shown(path)} is not a path: {error}") from None


def source_of(target: str) -> Path | None:
    """The file behind `module:Class` or `path/to/file.py:Class`; None if there is none."""
    if match := FILE_TARGET.fullmatch(target):
        return _places.get(match["path"]) or _file_at(match["path"])
    if match := MODULE_TARGET.fullmatch(target):
        try:
            spec = importlib.util.find_spec(match["module"])
        except (ImportError, ValueError, AttributeError):
            return None
        if spec is not None and spec.origin is not None and spec.has_location:
            return Path(spec.origin)
    return None


def file_plugins(data: Any) -> dict[str, dict[str, str]]:
    """For each `path/to/file.py:Class` among the texts of a scenario, its place and its hash."""
    found = {}
    for text in sorted(set(texts_in(data))):
        if FILE_TARGET.fullmatch(text) and (file := source_of(text)) is not None:
            found[text] = {"file": str(file), "sha256": content_hash(file)}
    return found


def find_again(stored: Any) -> list[str]:
    """Finds the files of `file_plugins` again. Returns those that are gone or were changed.

    A file with the stored content is wanted: the one that the path leads to from here, or else the
    one at the stored place. Without any, whatever file is there is used.
    """
    lost = []
    for text, facts in stored.items() if isinstance(stored, dict) else ():
        match = FILE_TARGET.fullmatch(str(text))
        if match is None or not isinstance(facts, dict):
            continue
        path = match["path"]
        files = [file for place in (path, str(facts.get("file"))) if (file := _file_at(place))]
        same = [file for file in files if content_hash(file) == facts.get("sha256")]
        if not same:
            lost.append(f"{text} ({shown(facts.get('file'))})")
        if same or files:
            _places[path] = (same or files)[0]
    return lost


def _file_at(path: str) -> Path | None:
    try:
        file = Path(path).expanduser().resolve()
        return file if file.is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None


def content_hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def texts_in(data: Any) -> Iterator[str]:
    """Every text among values, in tables and lists."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for value in data.values():
            yield from texts_in(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from texts_in(value)


def _module(name: str) -> ModuleType:
    if not name.startswith("flmarket_sim."):
        try:
            _importable(Path.cwd())
        except OSError:
            pass  # the working directory is gone
    return importlib.import_module(name)


def _import_file(file: Path) -> ModuleType:
    _importable(Path.cwd())
    folder, parts = file.parent, [file.stem]
    while (folder / "__init__.py").is_file():
        folder, parts = folder.parent, [folder.name, *parts]
    _importable(folder)
    importlib.invalidate_caches()  # the file may be younger than what Python knows of its folder
    name = ".".join(parts)
    if all(part.isidentifier() for part in parts) and _is_found_as(name, file):
        return importlib.import_module(name)
    unique = f"{re.sub(r'[^0-9A-Za-z_]', '_', file.stem)}_{_short_hash(file)}"
    spec = importlib.util.spec_from_file_location(unique, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[unique]
        raise
    return module


def _is_found_as(name: str, file: Path) -> bool:
    """Whether an import of this name leads to the file."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return False
    return spec is not None and spec.origin is not None and Path(spec.origin).resolve() == file


def _already_imported(file: Path) -> ModuleType | None:
    """The module of a file that Python has imported without us; a running script, too."""
    for module in list(sys.modules.values()):
        origin = getattr(module, "__file__", None)
        named_alike = isinstance(origin, str) and Path(origin).name == file.name
        if named_alike and Path(str(origin)).resolve() == file:
            return module
    return None


def _importable(folder: Path) -> None:
    known = {Path(entry).resolve() for entry in sys.path}
    if folder.resolve() not in known:
        sys.path.append(str(folder.resolve()))


def _short_hash(file: Path) -> str:
    return hashlib.sha256(str(file).encode("utf-8", "surrogateescape")).hexdigest()[:8]


def _advice(place: str) -> str:
    """For those who named a file as if it were a module."""
    try:
        there = not place.endswith(".py") and Path(f"{place}.py").is_file()
    except (OSError, ValueError):
        there = False
    return f"; a file is named with its ending, as {place}.py:Class" if there else ""
