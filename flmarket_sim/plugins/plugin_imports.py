"""The modules beside a plug-in that its file imports.

They are found in the text of the file, by its import statements, and nothing is imported. So every
process finds the same files, whatever it has imported before.
"""

from __future__ import annotations

import ast
import sysconfig
import warnings
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[1]
INSTALLED = ("site-packages", "dist-packages")  # folders of installed packages


class _Import(NamedTuple):
    """What one statement may import: `dots` is how many folders it begins above the file's."""

    dots: int
    parts: tuple[str, ...]


def imported_files(file: Path) -> dict[str, Path]:
    """The files that a plug-in's file imports, also through one another, by their names.

    A name is the path from the folder where Python begins to look: that of the file (of the
    outermost package that it is in), or the working directory, or else wherever Python finds the
    module, as in a package that is installed from its source. Installed copies of packages and this
    package are left out, since versions stand for them. So are names that are made as the program
    runs.
    """
    file = file.resolve()
    if _has_a_version(file):
        return {}
    roots = list(dict.fromkeys([_root(file), *_working_directory()]))
    found: dict[Path, str] = {}
    waiting = [file]
    while waiting:
        for path, root in list(_imports_of(waiting.pop(), roots)):
            real = path.resolve()  # names are of links, too, and a file counts once
            if real != file and real not in found and not _has_a_version(real):
                found[real] = path.relative_to(root).as_posix()
                waiting.append(path)
                roots += [root] if root not in roots else []
    return {found[path]: path for path in sorted(found)}


def _imports_of(file: Path, roots: list[Path]) -> Iterator[tuple[Path, Path]]:
    """The files that one file imports itself, each with the root that its name begins at."""
    for dots, parts in _statements(file.read_bytes()):
        if dots:
            above = [file.parent, *file.parent.parents][dots - 1 : dots]
            for start in above:
                near = [root for root in roots if start.is_relative_to(root)]
                yield from ((path, near[0]) for path in _along(start, parts) if near)
            continue
        for root in [*roots, *_elsewhere(parts[0])]:
            files = list(_along(root, parts))
            if files:
                if not _is_installed(parts[0]):
                    yield from ((path, root) for path in files)
                break


def _along(folder: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """The files that Python runs on its way to a.b.c: of the packages a and a.b, and of c."""
    here = folder
    if parts == () and (init := here / "__init__.py").is_file():
        yield init
    for part in parts:
        module, package = here / f"{part}.py", here / part / "__init__.py"
        if package.is_file():
            yield package
        elif module.is_file():
            yield module
        here = here / part


@lru_cache(maxsize=256)
def _statements(source: bytes) -> tuple[_Import, ...]:
    """What the import statements of a file name, also those inside of functions."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the import of the file has them, too
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # its import says what is wrong
        return ()
    found: dict[_Import, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {_Import(0, tuple(alias.name.split("."))): None for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = tuple(node.module.split(".")) if node.module else ()
            names = [_Import(node.level, (*base, alias.name)) for alias in node.names]
            found |= dict.fromkeys([_Import(node.level, base), *names])
    return tuple(one for one in found if one.dots or one.parts)


def _root(file: Path) -> Path:
    """The folder where Python begins to look for a file: above the packages that it is in."""
    folder = file.parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _working_directory() -> list[Path]:
    """The working directory, if it is still there."""
    try:
        return [Path.cwd().resolve()]
    except OSError:
        return []


def _elsewhere(name: str) -> list[Path]:
    """The folder where Python itself finds a module or package of this name."""
    spec = _spec(name)
    if spec is None or not spec.has_location or spec.origin is None:
        return []
    folder = Path(spec.origin).parent
    return [folder if spec.submodule_search_locations is None else folder.parent]


def _is_installed(name: str) -> bool:
    """Whether Python finds an installed module of this name, which hides one that lies here."""
    spec = _spec(name)
    if spec is None:
        return False
    if not spec.has_location or spec.origin is None:
        return spec.submodule_search_locations is None  # built into Python
    return _has_a_version(Path(spec.origin).resolve())


def _spec(name: str) -> ModuleSpec | None:
    try:
        return find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None


def _has_a_version(file: Path) -> bool:
    """Whether a file belongs to this package, to an installed one, or to Python."""
    python = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")]
    return (
        any(folder in INSTALLED for folder in file.parts)
        or file.is_relative_to(PACKAGE)
        or any(file.is_relative_to(folder) for folder in python)
    )
