"""Manners of the command line: -h, -q, -v, completion, hints, lists, citations, exit codes."""

import os
import re
import signal
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from flmarket_sim import __version__
from flmarket_sim.cli import citation
from flmarket_sim.cli.app import COMMANDS, _imported, app
from tests.support.command_line import flmarket
from tests.support.paths import ROOT
from tests.support.patience import PATIENCE, wait_until

HANGUP = getattr(signal, "SIGHUP", signal.SIGTERM)  # the end of a terminal, where there is one
RUN = ["run", "quickstart", "--set", "rounds=1", "--set", "model.name=none"]


def invoke(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), prog_name="flmarket")


def leaves():
    """Every command with its words, also `data list` and `privacy audit`."""
    for name in COMMANDS:
        command = _imported(name)
        inner = getattr(command, "commands", None)
        if inner is None:
            yield [name], command
        else:
            yield from (([name, each], leaf) for each, leaf in inner.items())


LEAVES = list(leaves())


@pytest.mark.parametrize(("words", "command"), LEAVES, ids=[" ".join(words) for words, _ in LEAVES])
def test_h_shows_every_help_text_with_its_brackets(words, command):
    short, long = invoke(*words, "-h"), invoke(*words, "--help")
    assert short.exit_code == 0 and short.stdout == long.stdout
    shown = " ".join(short.stdout.split())
    letters = "".join(shown.split())  # lines are broken at hyphens too
    for parameter in command.params:
        text = getattr(parameter, "help", None) or ""
        assert "".join(text.split()) in letters
    for option in ("-q, --quiet", "-v, --verbose", "-h, --help"):
        assert option in shown


def test_help_is_in_order_of_use_and_keeps_brackets():
    text = invoke("--help").stdout
    listed = re.findall(r"^  ([a-z]+) {2,}[A-Z]", text.split("Commands:")[1], re.MULTILINE)
    assert listed == list(COMMANDS) and listed[0] == "run"
    assert "the [study] table" in text and "--install-completion" in text


def test_q_prints_results_only(tmp_path):
    loud = flmarket(*RUN, "--out", tmp_path / "loud")
    quiet = flmarket(*RUN, "-q", "--out", tmp_path / "quiet")
    assert "next: flmarket report" in loud.stdout and "not shown" in loud.stdout
    assert quiet.returncode == 0 and quiet.stderr == ""
    assert "next:" not in quiet.stdout and "not shown" not in quiet.stdout
    assert "round" in quiet.stdout
    before = flmarket("-q", *RUN, "--out", tmp_path / "before")
    assert "next:" not in before.stdout and before.returncode == 0


def test_v_says_where_time_went_and_where_an_error_happened(tmp_path):
    told = flmarket(*RUN, "-v", "--out", tmp_path / "run").stderr
    assert f"flmarket {__version__}, Python" in told
    assert re.search(r"\d s: quickstart \d+\.\d\d s, everything else", told)
    wrong = flmarket("run", "nowhere.toml", "-v")
    assert wrong.returncode == 2 and "Traceback" in wrong.stderr
    assert "Traceback" not in flmarket("run", "nowhere.toml").stderr


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["run", "x", "--ste", "a=1"], "--ste; did you mean --set?"),
        (["run", "x", "--jsn"], "--jsn; did you mean --json?"),
        (["run", "x", "--rounds", "3"], "--set rounds=VALUE"),
        (["privacy", "ledger", "x", "--tpo", "3"], "did you mean --top?"),
        (["--set", "a=1", "run", "x"], "come after its name"),
        (["rnu"], "Did you mean 'run'?"),
        (["list", "auktions"], "did you mean 'auctions'?"),
    ],
)
def test_a_typing_error_gets_the_nearest_name(arguments, hint):
    result = flmarket(*arguments)
    assert result.returncode == 2 and hint in result.stderr and result.stdout == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell):
    def completed(words, word):
        line = " ".join(["flmarket", *words, word])
        given = {
            "_FLMARKET_COMPLETE": f"complete_{shell}",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) + 1),
            "_TYPER_COMPLETE_ARGS": line,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }
        return flmarket(env=given).stdout

    assert "run" in completed([], "r") and "resume" in completed([], "r")
    assert "--seed" in completed(["run"], "--s") and "--set" in completed(["run"], "--s")


def test_lists_need_no_argument_and_know_singulars():
    everything = invoke("list").stdout
    for name in ("auctions (", "scenarios (", "quickstart", "all-in-critical"):
        assert name in everything
    for one, many in (("auction", "auctions"), ("study", "studies"), ("scenario", "scenarios")):
        assert invoke("list", one).stdout == invoke("list", many).stdout


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, HANGUP])
def test_an_interrupted_command_ends_with_130(tmp_path, number):
    program = os.path.join(os.path.dirname(sys.executable), "flmarket")
    settings = ["--set", "model.name=none", "--set", "rounds=1000000"]
    process = subprocess.Popen(
        [program, "run", "quickstart", *settings, "--out", str(tmp_path / "my run")],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(HANGUP, signal.SIG_DFL),  # these tests may run under nohup
    )
    wait_until(lambda: list(tmp_path.glob("my run/events/journal-*")))  # a round is over
    process.send_signal(number)
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert f"flmarket resume '{tmp_path / 'my run'}'" in told  # a command to copy


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no such signal")
def test_the_end_of_a_terminal_is_not_heard_under_nohup(monkeypatch, capsys):
    from flmarket_sim.cli import main

    before = signal.signal(HANGUP, signal.SIG_IGN)
    try:
        monkeypatch.setattr(sys, "argv", ["flmarket", "--version"])
        with pytest.raises(SystemExit):
            main()
        assert signal.getsignal(HANGUP) is signal.SIG_IGN
    finally:
        signal.signal(HANGUP, before)


def test_an_interrupt_outside_of_work_is_130_too(monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    from flmarket_sim.cli import main

    monkeypatch.setattr("flmarket_sim.scenario.scenario_file.load_scenario", interrupt)
    monkeypatch.setattr(sys, "argv", ["flmarket", "validate", "x.toml"])
    with pytest.raises(SystemExit) as ending:
        main()
    assert ending.value.code == 130 and "interrupted" in capsys.readouterr().err


def test_a_citation_has_the_facts_of_the_citation_file():
    facts = (ROOT / "CITATION.cff").read_text()
    assert f"version: {citation.SOFTWARE['version']}" in facts
    for value in (citation.SOFTWARE["title"], *citation.PAPER.values()):
        for part in re.split(r" and |, |--", value.strip("{}")):
            assert part in facts, part
    assert citation.SOFTWARE["author"].strip("{}") in facts
    text = invoke("cite").stdout
    assert text.count("@") == 2 and text.count("{") == text.count("}")
    assert "10.1109/BigData55660.2022.10020232" in text and f"Version {__version__}" in text


def test_a_citation_of_a_run_names_scenario_and_seed(tmp_path):
    ran = invoke(*RUN, "--seed", "41", "--out", tmp_path / "run", "--json")
    assert ran.exit_code == 0
    for style in ("--bibtex", "--plain"):
        text = invoke("cite", tmp_path / "run", style).stdout
        assert "seed 41" in text and re.search(r"SHA-256 [0-9a-f]{64}", text)


def test_next_steps_can_be_copied(tmp_path):
    folder = tmp_path / "it's a run"
    text = invoke(*RUN, "--out", folder).stdout
    steps = [line[6:] for line in text.splitlines() if line[6:].startswith("flmarket ")]
    assert len(steps) == 2
    for step in steps:
        program = os.path.join(os.path.dirname(sys.executable), "flmarket")
        done = subprocess.run(
            step.replace("flmarket", program, 1), shell=True, capture_output=True, text=True
        )
        assert done.returncode == 0, (step, done.stderr)


def test_no_command_hides_the_options_of_all():
    assert all(isinstance(command, typer.core.TyperCommand) for _, command in LEAVES)
