"""Where scenario files are: at a path, or in the package, by name.

Names of shipped scenarios are `quickstart`, `paper/iid`, `studies/liars` and so on.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from flmarket_sim.errors import ScenarioError, did_you_mean

PACKAGE = Path(__file__).parents[1]
IN_A_WHEEL, IN_A_CHECKOUT = PACKAGE / "scenarios", PACKAGE.parent / "scenarios"
FOLDER = IN_A_WHEEL if IN_A_WHEEL.is_dir() else IN_A_CHECKOUT
LARGEST_FILE = 1_000_000  # bytes


def scenario_names() -> list[str]:
    """The names of all shipped scenarios."""
    return sorted(
        path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.toml")
    )


def scenario_path(name: str) -> Path:
    """The file of a shipped scenario; raises ScenarioError if there is none of this name."""
    path = find_scenario(name)
    if path is None:
        hint = did_you_mean(name, scenario_names())
        raise ScenarioError(f"no scenario {name!r} comes with flmarket{hint}")
    return path


def find_scenario(name: str | os.PathLike[str]) -> Path | None:
    """The file of a shipped scenario, or None; `scenarios/paper/iid.toml` means `paper/iid`."""
    bare = Path(name).as_posix().removeprefix("scenarios/").removesuffix(".toml")
    return FOLDER / f"{bare}.toml" if bare in scenario_names() else None


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of the file at this path, or else of the shipped scenario of this name."""
    file = Path(path)
    try:
        shipped = None if file.is_file() else find_scenario(file)
        with (shipped or file).open("rb") as opened:
            content = opened.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise ScenarioError(
                f"{file} has more than {LARGEST_FILE:,} bytes: it is not a scenario"
            )
        return content.decode("utf-8").replace("\r\n", "\n")
    except FileNotFoundError:
        here = difflib.get_close_matches(file.name, [p.name for p in file.parent.glob("*.toml")], 1)
        near = [str(file.parent / name) for name in here] or difflib.get_close_matches(
            str(path), scenario_names(), 1
        )
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ScenarioError(f"there is no scenario file {file}{hint}") from None
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a name with a NUL
        raise ScenarioError(f"{file} cannot be read: {error}") from None
