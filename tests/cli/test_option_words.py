"""Errors name settings as Python does, and the command line names its options."""

import re

from flmarket_sim.cli.option_words import OPTIONS, with_options
from tests.support.command_line import flmarket
from tests.support.paths import ROOT


def test_a_setting_becomes_its_option_and_other_words_stay():
    told = "name another directory with `out`; `force=True` replaces it; `squeue --me` and `x` stay"
    assert with_options(told) == (
        "name another directory with --out; --force replaces it; `squeue --me` and `x` stay"
    )


def test_the_command_line_tells_options(tmp_path):
    (tmp_path / "file").write_text("mine")
    told = flmarket("run", "quickstart", "--out", tmp_path)
    assert told.returncode == 2 and "name another with --out" in told.stderr
    told = flmarket("run", "quickstart", "--set", "rounds", "--out", tmp_path / "new")
    assert told.returncode == 2 and "--set wants dotted.path=value" in told.stderr


def test_no_message_outside_the_command_line_has_an_option():
    about = re.compile(r"raise \w*Error\((.*?)\)\s*(?:from|\n)", re.DOTALL)
    wrong = []
    for path in (ROOT / "flmarket_sim").rglob("*.py"):
        if path.parent.name == "cli":
            continue
        for message in about.findall(path.read_text()):
            words = re.findall(r"(?<![`\w-])--[a-z][a-z-]+", re.sub(r"`[^`]*`", "", message))
            wrong += [f"{path.name}: {word}" for word in words]
    assert wrong == [] and OPTIONS
