"""`make lock`: writes the hashes of all pinned packages, for all our platforms, to the lock files.

The hashes are those that pip's package index lists, so nothing is downloaded. Files in pip's
--find-links folders are hashed here.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from packaging.tags import Tag
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version
from pip._internal.commands import create_command
from pip._internal.index.collector import LinkCollector, parse_links
from pip._internal.models.link import Link

from upkeep.pins import ROOT, Pin, lock_contents, unpinned

PYTHONS = (11, 12, 13)  # 3.x
HEAD = (
    "# Made from the requirements files by 'make lock'. "
    "Linux (x86-64, arm64) and macOS, Python 3.11 to 3.13.\n"
)


def fits(tag: Tag) -> bool:
    """Whether a wheel with this tag can be installed on one of our platforms."""
    place = re.fullmatch(
        r"any|macosx_\w+|(many|musl)linux\w*_(x86_64|aarch64)|linux_(x86_64|aarch64)", tag.platform
    )
    if place is None:
        return False
    python = re.fullmatch(r"(py|cp)(\d)(\d*)", tag.interpreter)
    if python is None or python[2] != "3":
        return False
    minor = int(python[3] or 0)
    return minor in PYTHONS or ((python[1] == "py" or tag.abi == "abi3") and minor <= max(PYTHONS))


def wanted(filename: str, pin: Pin) -> bool:
    """Whether a file is of the pinned package and version, for one of our platforms."""
    try:
        if filename.endswith(".whl"):
            name, version, _, tags = parse_wheel_filename(filename)
            usable = any(fits(tag) for tag in tags)
        else:
            name, version = parse_sdist_filename(filename)
            usable = True
    except (InvalidWheelFilename, InvalidSdistFilename):
        return False
    same = Version(pin.version) in (version, Version(version.public))  # 2.13.0+cpu is a 2.13.0
    return usable and name == canonicalize_name(pin.name) and same


class Index:
    """The files that pip would consider."""

    def __init__(self) -> None:
        command = create_command("download")
        options, _ = command.parse_args(["unused"])
        self._pages = LinkCollector.create(command._build_session(options), options)

    def links(self, name: str) -> Iterator[Link]:
        for url in self._pages.search_scope.get_index_urls_locations(name):
            page = self._pages.fetch_response(Link(url))
            yield from parse_links(page) if page else ()
        for folder in self._pages.find_links:
            if Path(folder).is_dir():
                yield from (
                    Link(file.resolve().as_uri()) for file in sorted(Path(folder).iterdir())
                )

    def hashes(self, pin: Pin) -> list[str]:
        digests = set()
        for link in self.links(pin.name):
            if wanted(link.filename, pin):
                digests.add(link.hash if link.hash_name == "sha256" else _sha256(link))
        if not digests:
            raise SystemExit(f"the index has no file of {pin} for our platforms")
        return sorted(digests)


def _sha256(link: Link) -> str:
    if not link.is_file:
        raise SystemExit(f"the index gives no SHA-256 for {link.filename}")
    return hashlib.sha256(Path(link.file_path).read_bytes()).hexdigest()


def text(entries: list[tuple[Pin, list[str]]]) -> str:
    parts = [
        str(pin) + "".join(f" \\\n    --hash=sha256:{h}" for h in hashes) for pin, hashes in entries
    ]
    return HEAD + "\n".join(parts) + "\n"


def main() -> None:
    problems = list(unpinned())
    if problems:
        raise SystemExit("\n".join(problems))
    index, known = Index(), {}
    for name, members in lock_contents().items():
        for pin in members:
            print(f"{name}: {pin}", file=sys.stderr)
            known[pin] = known.get(pin) or index.hashes(pin)
        (ROOT / name).write_text(text([(pin, known[pin]) for pin in members]), encoding="utf-8")
        print(f"{name}: {len(members)} packages, {sum(len(known[pin]) for pin in members)} hashes")


if __name__ == "__main__":
    main()
