"""Pins of the requirements files, hashes of the lock files, and requirements of the packages.

`requirements*.txt` are for people: exact versions of all packages, also of indirect requirements.
The lock file beside each has the hashes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from itertools import product
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
# Packages with a separate lock; CONTRIBUTING.md has the reason.
APART = {"torch": "requirements-torch.lock"}
PLATFORMS = tuple(
    {
        "sys_platform": system,
        "platform_system": name,
        "os_name": "posix",
        "platform_machine": machine,
    }
    | {"python_version": python, "python_full_version": f"{python}.0"}
    for (system, name, machines), python in product(
        (("linux", "Linux", ("x86_64", "aarch64")), ("darwin", "Darwin", ("x86_64", "arm64"))),
        ("3.11", "3.12", "3.13"),
    )
    for machine in machines
)


@dataclass(frozen=True)
class Pin:
    name: str  # as PEP 503 writes it
    version: str
    marker: str = ""  # for example python_version == "3.13"; empty for all platforms

    def __str__(self) -> str:
        return f"{self.name}=={self.version}" + (f" ; {self.marker}" if self.marker else "")


def requirement_files() -> list[Path]:
    return sorted(ROOT.glob("requirements*.txt"), key=lambda path: path.stem)


def pins(path: Path) -> list[Pin]:
    lines = (line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [_pin(line, path) for line in lines if line]


def all_pins() -> dict[str, str]:
    """Versions of all packages by name. Two versions of a package in two files are an error."""
    versions: dict[str, str] = {}
    for path in requirement_files():
        for pin in pins(path):
            if versions.setdefault(pin.name, pin.version) != pin.version:
                raise SystemExit(
                    f"{path.name}: {pin.name}=={pin.version}, "
                    f"but elsewhere it is {versions[pin.name]}"
                )
    return versions


def locked(path: Path) -> dict[Pin, list[str]]:
    """The hashes of every package in a lock."""
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {
        _pin(line.split("--hash")[0].strip(), path): re.findall(
            r"--hash=sha256:([0-9a-f]{64})", line
        )
        for line in lines
    }


def lock_contents() -> dict[str, list[Pin]]:
    """The pins of each lock file."""
    files: dict[str, list[Pin]] = {}
    for path in requirement_files():
        for pin in pins(path):
            files.setdefault(APART.get(pin.name, path.with_suffix(".lock").name), []).append(pin)
    return files


def needs(name: str, extra: str = "") -> set[str]:
    """Requirements of an installed package on any of our platforms, by its metadata."""
    names = set()
    for text in metadata.requires(name) or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({**place, "extra": extra}) for place in PLATFORMS):
            names.add(canonicalize_name(requirement.name))
            for further in requirement.extras:
                try:
                    names |= needs(requirement.name, further)
                except metadata.PackageNotFoundError:
                    continue
    return names


def unpinned() -> Iterator[str]:
    """Requirements of pinned and installed packages that no file pins."""
    known = all_pins()
    for name in known:
        if name in APART:  # its builds differ in their requirements
            continue
        try:
            missing = needs(name) - set(known)
        except metadata.PackageNotFoundError:
            continue
        yield from (
            f"{name} needs {needed}, which no requirements file pins" for needed in sorted(missing)
        )


def _pin(text: str, path: Path) -> Pin:
    match = re.fullmatch(r"([A-Za-z0-9][\w.-]*)==([\w.!+-]+)(?:\s*;\s*(.+))?", text)
    if match is None:
        raise SystemExit(f"{path.name}: {text!r} is not NAME==VERSION")
    return Pin(canonicalize_name(match[1]), match[2], match[3] or "")
