"""Where scenario files are: here, or with the package, by name: `quickstart`, `paper/iid`, `studies/liars`."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from flmarket_sim.errors import ScenarioError, did_you_mean

FOLDER = (
    Path(__file__).parents[1] / "scenarios"
)  # in a checkout a link to scenarios/ at the top, in a wheel the files

LARGEST_FILE = 1_000_000  # bytes


def scenario_names() -> list[str]:
    folder = FOLDER.resolve()  # rglob does not follow links
    return sorted(
        path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.toml")
    )


def scenario_path(name: str) -> Path:
    """The file of a shipped scenario, whatever folder one is in."""
    found = find_scenario(name)
    if found is None:
        hint = did_you_mean(name, scenario_names())
        raise ScenarioError(f"no scenario {name!r} comes with flmarket{hint}")
    return found


def find_scenario(name: str | os.PathLike[str]) -> Path | None:
    """As `scenario_path`, with None for what is not shipped. `scenarios/paper/iid.toml` is read as `paper/iid`."""
    bare = Path(name).as_posix().removeprefix("scenarios/").removesuffix(".toml")
    return FOLDER / f"{bare}.toml" if bare in scenario_names() else None


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a scenario file that is here, or else of the shipped one of that name."""
    file = Path(path)
    try:
        shipped = None if file.is_file() else find_scenario(file)
        with (shipped or file).open("rb") as opened:
            content = opened.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise ScenarioError(f"{file} has more than {LARGEST_FILE:,} bytes: that is no scenario")
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
