"""`make dist`: the wheel and the sdist, built from this checkout without a network."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import tempfile
from pathlib import Path

from setuptools import build_meta

from upkeep.pins import ROOT

EXCLUDED = (
    ".git",
    ".venv",
    "build",
    "dist",
    "site",
    "runs",
    "mutants",
    ".coverage",
    "*.egg-info",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
)


def build(out: Path) -> tuple[Path, Path]:
    """Wheel and sdist in `out`, built in a copy without the remains of earlier builds."""
    out.mkdir(parents=True, exist_ok=True)
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "flmarket_sim"
        shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*EXCLUDED))
        os.chdir(copy)
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # a long list of copied files
                wheel, sdist = (
                    build_meta.build_wheel(str(out.resolve())),
                    build_meta.build_sdist(str(out.resolve())),
                )
        finally:
            os.chdir(here)
    return out / wheel, out / sdist


if __name__ == "__main__":
    for file in build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"):
        print(f"{file.name}: {file.stat().st_size / 1e6:.1f} MB")
