"""Puts the scenarios at the top into wheels, as flmarket_sim/scenarios; the rest is pyproject.toml.

A checkout and an editable install read them where they are (flmarket_sim/scenario/shipped.py).
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithScenarios(build_py):
    """Copies the modules, and then the scenarios."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for file in sorted(Path("scenarios").rglob("*.toml")):
                target = Path(self.build_lib) / "flmarket_sim" / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)


setup(cmdclass={"build_py": BuildWithScenarios})
