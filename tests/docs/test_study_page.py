"""The study of docs/writing-a-study.md runs as the page says, and so does its debugging."""

import re
import subprocess
import sys

import pytest

from tests.support.command_line import flmarket, json_output
from tests.support.paths import ROOT

from .test_docs import blocks

PAGE = "docs/writing-a-study.md"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "what_money_buys.py").write_text(blocks(PAGE, "python")[0])
    (tmp_path / "what_money_buys.toml").write_text(blocks(PAGE, "toml")[0])
    return tmp_path


def test_the_study_of_the_page_runs_from_one_file(folder):
    small = ("--set", "study.profiles=40", "--out", "found")
    found = json_output("study", "what_money_buys.toml", *small, "--json", cwd=folder)
    labels = ["all-in-critical", "cheap", "dear"]
    assert [row["auction"] for row in found["rows"]] == [name for name in labels for _ in range(3)]
    assert len(found["sentences"]) == 1
    assert found["sentences"][0].split(" has ")[0] in labels
    assert all(row["error_low"] <= row["error"] <= row["error_high"] for row in found["rows"])
    assert (folder / "found" / "figure.svg").exists()
    printed = subprocess.run(
        [sys.executable, "-c", blocks(PAGE, "python")[1]],
        cwd=folder, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "error_low" in printed


def test_a_failing_task_is_shown_as_on_the_page(folder):
    file = folder / "what_money_buys.py"
    file.write_text(file.read_text().replace('money = work["budget"]', 'money = work["budgets"]'))
    failed = flmarket("study", "what_money_buys.toml", "--workers", "1", cwd=folder)
    shown = re.search(r"```\n(flmarket: .*?)```", (ROOT / PAGE).read_text(), re.DOTALL)[1]
    assert failed.returncode == 1 and shown.strip() in failed.stderr
