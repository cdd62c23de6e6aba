"""The authors' published weights, where they lie beside the checkout."""

from pathlib import Path

import pytest

from tests.support.paths import ROOT

FOLDER = ROOT.parent / "shared/reference"


def published_weights() -> Path:
    """The folder with `checkpoints` and `levels`; without it, the test is skipped."""
    if not (FOLDER / "levels").is_dir():
        pytest.skip("the authors' weights are not beside the checkout (../shared/reference)")
    return FOLDER
