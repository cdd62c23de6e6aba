"""`make licences`: THIRD_PARTY.md from the metadata of the installed packages.

The command stops at a licence that is not in ACCEPTED: somebody has to review it first.
"""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from upkeep.pins import ROOT, Pin, pins, requirement_files

PAGE = ROOT / "THIRD_PARTY.md"
ACCEPTED = {
    *(
        "MIT",
        "MIT-0",
        "MIT-CMU",
        "ISC",
        "0BSD",
        "BSD",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "Apache-2.0",
        "BSL-1.0",
        "Zlib",
    ),
    *("PSF-2.0", "CC0-1.0", "Unlicense", "Apache-2.0 WITH LLVM-exception"),
    "MPL-2.0",  # its own files must stay open, ours need not
}
SPELLINGS = {  # packages write these instead of an SPDX expression
    "MIT License": "MIT",
    "The MIT License": "MIT",
    "BSD License": "BSD",
    "BSD 3-Clause": "BSD-3-Clause",
    "BSD-3": "BSD-3-Clause",
    "New BSD": "BSD-3-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "ISC License": "ISC",
    "ISC license": "ISC",
    "ISC License (ISCL)": "ISC",
    "Python Software Foundation License": "PSF-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
# Looked up by hand: not in the metadata, or not installed on every platform of the locks.
LOOKED_UP = {
    "appnope": "BSD-2-Clause",
    "atheris": "Apache-2.0",
    "pycryptodome": "BSD-2-Clause",  # and parts in the public domain
    "pyyaml-ft": "MIT",
}
HEAD = """# Third-party packages

Everything that `make` installs, with the licence that each package states in its own metadata.
Made by `make licences`, which stops at a licence that nobody has reviewed; the tests check that the
list is current. None of these packages is part of this repository or of the wheel: pip fetches
them. Bold packages are requirements of flmarket_sim itself (pyproject.toml); the others are
requirements of those.
"""


def licence(name: str) -> str:
    """The SPDX expression of a package, as far as its metadata have one."""
    about = metadata.metadata(name)
    stated = [about.get("License-Expression") or "", about.get("License") or ""]
    for text in stated:
        if text not in ("", "UNKNOWN") and len(text) < 120 and "\n" not in text:
            return SPELLINGS.get(text.strip(), text.strip())
    classes = [
        c.split(" :: ")[-1] for c in about.get_all("Classifier") or () if c.startswith("License ::")
    ]
    return " OR ".join(SPELLINGS.get(c, c) for c in classes) or "not stated"


def accepted(expression: str) -> bool:
    """Whether one alternative of the expression has accepted licences only."""
    ways = expression.replace("(", "").replace(")", "").split(" OR ")
    return any(all(part.strip() in ACCEPTED for part in way.split(" AND ")) for way in ways)


def direct() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = [
        *project["dependencies"],
        *(text for extra in project["optional-dependencies"].values() for text in extra),
    ]
    return {canonicalize_name(Requirement(text).name) for text in requirements}


def title(path: Path) -> str:
    """The comment on the first line of a requirements file says what it is for."""
    return (
        path.read_text(encoding="utf-8")
        .splitlines()[0]
        .lstrip("# ")
        .split(",")[0]
        .split(":")[0]
        .rstrip(".")
        .replace("`", "")
    )


def row(pin: Pin, ours: set[str], expression: str) -> str:
    return (
        f"| {f'**{pin.name}**' if pin.name in ours else pin.name} | {pin.version} | {expression} |"
    )


def stated_on_page() -> dict[Pin, str]:
    rows = re.findall(
        r"^\| \**([\w.-]+?)\** \| (\d[^| ]*) \| (.+) \|$",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    return {Pin(name, version): expression for name, version, expression in rows}


def page() -> str:
    ours, parts, problems = direct(), [HEAD], []
    for path in requirement_files():
        rows = []
        for pin in pins(path):
            try:
                expression = LOOKED_UP.get(pin.name) or licence(pin.name)
            except metadata.PackageNotFoundError:
                problems.append(f"{pin.name} is not installed here ({path.name})")
                continue
            if not accepted(expression):
                problems.append(
                    f"{pin.name}: {expression!r} is not an accepted licence; review it, then see "
                    f"{__name__}.ACCEPTED"
                )
            rows.append(row(pin, ours, expression))
        parts.append(
            "\n".join(
                [f"## {title(path)}\n", "| package | version | licence |", "|---|---|---|", *rows]
            )
            + "\n"
        )
    if problems:
        raise SystemExit("\n".join(problems))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.name}: {len(stated_on_page())} packages")
