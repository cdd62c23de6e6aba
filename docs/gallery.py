"""The pictures of docs/gallery.md that have code: `python -m docs.gallery` makes them again.

The first line of each block of code names the picture that it makes.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

PAGE = Path(__file__).with_name("gallery.md")
BLOCK = re.compile(r"```python\n# (\S+\.png)\n(.*?)```", re.DOTALL)


def blocks() -> dict[str, str]:
    """The code that makes each picture, by the path of the picture below docs/."""
    return dict(BLOCK.findall(PAGE.read_text()))


def draw(picture: str, folder: Path) -> Path:
    """Runs the code of a picture in a folder, and returns the file that it has made."""
    (folder / picture).parent.mkdir(parents=True, exist_ok=True)
    here = Path.cwd()
    os.chdir(folder)
    try:
        exec(compile(blocks()[picture], str(PAGE), "exec"), {"__name__": "gallery"})
    finally:
        os.chdir(here)
    return folder / picture


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for name in blocks():
            shutil.copyfile(draw(name, Path(place)), PAGE.parent / name)
