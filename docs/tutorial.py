"""Runs the tutorial: `python -m docs.tutorial` writes the outputs on docs/tutorial.md anew.

The page is played in an empty folder, from top to bottom:

    ```python whose first line is `# NAME.py`     is written to that file
    ```sh                                         every line that begins with `flmarket` is run
    <!-- output: FIRST .. LAST --> and ```text    hold what the last command printed, from a line
                                                  that begins with FIRST to one with LAST
    <!-- keeps: FILE as PICTURE -->               a file that a command has made, shown on the page
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).with_name("tutorial.md")
ROOT = PAGE.parents[1]
STEP = re.compile(
    r"```python\n# (?P<file>\w+\.py)\n(?P<code>.*?)```"
    r"|```sh\n(?P<commands>.*?)```"
    r"|<!-- output: (?P<first>.*?) \.\. (?P<last>.*?) -->\n```text\n(?P<shown>.*?)```"
    r"|<!-- keeps: (?P<made>\S+) as (?P<picture>\S+) -->",
    re.DOTALL,
)
REFUTED = 1  # the exit code of an audit that finds something


def play(text: str, folder: Path, keep: bool = False) -> str:
    """The page with the outputs that its commands print now; `keep` stores its pictures too."""
    printed = ""

    def step(found: re.Match[str]) -> str:
        nonlocal printed
        if found["file"]:
            (folder / found["file"]).write_text(f"# {found['file']}\n{found['code']}")
        elif found["commands"]:
            for line in found["commands"].splitlines():
                if line.startswith("flmarket "):
                    printed = run(line, folder)
        elif found["first"]:
            shown = between(printed, found["first"], found["last"])
            return f"<!-- output: {found['first']} .. {found['last']} -->\n```text\n{shown}```"
        elif keep:
            shutil.copyfile(folder / found["made"], PAGE.parent / found["picture"])
        elif not (folder / found["made"]).exists():
            raise AssertionError(f"no command of the page makes {found['made']}")
        return found[0]

    return STEP.sub(step, text)


def run(command: str, folder: Path) -> str:
    """What a command prints on a terminal of 80 columns; a failure raises an error."""
    words = shlex.split(command, comments=True)
    done = subprocess.run(
        [sys.executable, "-m", "flmarket_sim.cli", *words[1:]],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "80"},
        capture_output=True,
        text=True,
    )
    if done.returncode not in ((0, REFUTED) if words[1] == "audit" else (0,)):
        raise AssertionError(f"{command}\n{done.stdout}{done.stderr}")
    return done.stdout


def between(printed: str, first: str, last: str) -> str:
    """The lines from the first that begins with `first` to the next that begins with `last`."""
    lines = [line.rstrip() for line in printed.splitlines()]
    starts = [number for number, line in enumerate(lines) if line.strip().startswith(first)]
    if not starts:
        raise AssertionError(f"no line begins with {first!r}:\n{printed}")
    ends = [n for n, line in enumerate(lines) if n >= starts[0] and line.strip().startswith(last)]
    if not ends:
        raise AssertionError(f"no later line begins with {last!r}:\n{printed}")
    return "\n".join(lines[starts[0] : ends[0] + 1]) + "\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        PAGE.write_text(play(PAGE.read_text(), Path(place), keep=True))
