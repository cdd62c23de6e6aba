"""evaluate, probe and audit: mechanisms side by side, tables that fit, files for a paper."""

import json
import re

import pytest

from tests.support.command_line import flmarket, json_output

SMALL = ("--set", "market.bidders=3", "--workers", "1")
QUICK = ("--scenario", "quickstart", "--profiles", "6", *SMALL)
COMMANDS = {
    "evaluate": (*QUICK, "--budgets", "0.5,1", "--floor", "0"),
    "probe": (*QUICK, "--effort", "quick"),
    "audit": ("--markets", "10", "--workers", "1"),
}
BROKEN = re.compile(r"\d+\.$|\[\S*$")  # a number or an interval that goes on in the next line


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("command", COMMANDS)
def test_two_mechanisms_fit_every_terminal(command, width, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", str(width))
    told = flmarket(command, "all-in", "pay-as-bid", *COMMANDS[command], cwd=tmp_path)
    assert told.returncode == (1 if command == "audit" else 0), told.stderr  # all-in claims more
    lines = told.stdout.splitlines()
    assert max(map(len, lines)) <= width
    assert not [line for line in lines if BROKEN.search(line)]
    assert "all-in" in told.stdout and "pay-as-bid" in told.stdout
    if command != "audit":
        assert "less all-in" in told.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_a_table_and_a_figure_take_one_command(command, tmp_path):
    out, figure = tmp_path / "table.tex", tmp_path / "figure.pdf"
    told = flmarket(
        command, "mine=all-in", "pay-as-bid", *COMMANDS[command], "--out", out, "--figure", figure
    )
    assert (
        told.returncode in (0, 1) and "mine" in out.read_text() and "Traceback" not in told.stderr
    )
    assert figure.read_bytes().startswith(b"%PDF")


def test_json_of_several_mechanisms_has_their_differences():
    rows = json_output(
        "evaluate",
        "all-in",
        "pay-as-bid",
        *COMMANDS["evaluate"],
        "--json",
        "--compare",
        "pay-as-bid",
    )
    assert [row["compared_with"] for row in rows] == ["pay-as-bid", None] * 2
    probes = json_output("probe", "all-in", "pay-as-bid", *COMMANDS["probe"], "--json")
    assert [probe["auction"] for probe in probes] == ["all-in", "pay-as-bid"]
    assert probes[0]["difference"] is None and probes[1]["difference"]["compared_with"] == "all-in"
    told = flmarket("audit", "all-in", "pay-as-bid", *COMMANDS["audit"], "--json")
    assert [report["passed"] for report in json.loads(told.stdout)] == [False, True]


def test_files_of_another_kind_are_refused_before_anything_is_computed(tmp_path):
    for option, name in (("--figure", "f.doc"), ("--out", "t.xlsx")):
        told = flmarket("evaluate", "all-in", *COMMANDS["evaluate"], option, tmp_path / name)
        assert told.returncode == 2 and name in told.stderr, told.stderr
        assert told.stdout == ""
