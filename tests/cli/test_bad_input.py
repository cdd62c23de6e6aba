"""Commands refuse files that are missing, of another kind, unreadable or empty.

The exit code is 1 or 2, and the message is one paragraph without a traceback.
"""

import json
import os
import subprocess
import sys

import pytest

import flmarket_sim as fm
from flmarket_sim.cli import main
from flmarket_sim.scenario.scenario_file import build_scenario
from tests.support.paths import ROOT
from tests.support.patience import PATIENCE

SMALL = 'rounds = 2\nowners.count = 20\nmodel.name = "none"\n'
COMMANDS = {
    "run": ["run", "{}", "--out", "{out}"],
    "validate": ["validate", "{}"],
    "sweep": ["sweep", "{}", "--out", "{out}"],
    "study": ["study", "{}", "--out", "{out}"],
    "probe": ["probe", "all-in", "--scenario", "{}"],
    "train": ["train", "regretnet", "--scenario", "{}", "--out", "{out}.safetensors"],
    "evaluate": ["evaluate", "all-in", "--scenario", "{}"],
    "weights": ["evaluate", "regretnet@{}", "--scenario", "scenarios/quickstart.toml"],
    "audit": ["audit", "regretnet@{}"],
    "report": ["report", "{}", "--out", "{out}.html"],
    "sql": ["sql", "{}", "select 1"],
}


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """Paths that are the right input of no command, by what they are."""
    folder = tmp_path_factory.mktemp("wrong é ' \" names")
    (folder / "empty.toml").touch()
    (folder / "directory.toml").mkdir()
    (folder / "binary.toml").write_bytes(bytes(range(256)))
    (folder / "secret.toml").write_text(SMALL)
    (folder / "secret.toml").chmod(0)
    (folder / "null.parquet").write_bytes(b"PAR1\0\0\0\0PAR1")
    fm.run(
        build_scenario({"rounds": 1, "owners": {"count": 20}, "model": {"name": "none"}}),
        folder / "hurt run",
    )
    (folder / "hurt run" / "run.json").write_text('{"scenario": 3}')
    (folder / "hurt run" / "owners.parquet").write_bytes(b"")
    (folder / "study").mkdir()
    (folder / "study" / "study.json").write_text("[")
    (folder / "sweep").mkdir()
    (folder / "sweep" / "sweep.json").write_text("{}")
    (folder / "sweep" / "summary.parquet").touch()
    return folder


NAMES = [
    "missing.toml",
    "empty.toml",
    "directory.toml",
    "binary.toml",
    "secret.toml",
    "null.parquet",
    "hurt run",
    "study",
    "sweep",
]
RIGHT = {
    (command, name)
    for command in ("run", "validate", "probe", "evaluate", "train")
    for name in ("empty.toml", "secret.toml")
}


def ended(arguments, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["flmarket", *arguments])
    with pytest.raises(SystemExit) as ending:
        main()
    return ending.value.code, capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_not_the_input_of_a_command_is_one_paragraph(
    command, name, wrong, tmp_path, monkeypatch, capsys
):
    if (command, name) in RIGHT:
        return  # an empty file is the default scenario, and nothing is a secret to root
    monkeypatch.chdir(ROOT)
    arguments = [
        part.replace("{out}", str(tmp_path / "out")).replace("{}", str(wrong / name))
        for part in COMMANDS[command]
    ]
    code, told = ended(arguments, monkeypatch, capsys)
    assert code in (1, 2) and told.startswith("flmarket: ") and len(told) < 3000, told
    assert "Traceback" not in told and "not foreseen" not in told, told


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", "all-in", "--scenario", "scenarios/quickstart.toml", "--budgets", "nan"],
        ["evaluate", "all-in", "--scenario", "scenarios/quickstart.toml", "--budgets", "inf"],
        ["evaluate", "all-in", "--scenario", "scenarios/quickstart.toml", "--budgets=-1"],
        [
            "evaluate",
            "all-in",
            "--scenario",
            "scenarios/quickstart.toml",
            "--budgets",
            "0.1:1e9:1e-9",
        ],
        ["probe", "all-in", "--scenario", "scenarios/quickstart.toml", "--budgets", "1e999"],
        ["probe", "os:system", "--scenario", "scenarios/quickstart.toml"],
        ["run", "scenarios/quickstart.toml", "--seed", str(2**70)],
        ["run", "scenarios/quickstart.toml", "--set", "rounds=nan"],
        ["run", "scenarios/quickstart.toml", "--out", "a\0b"],
        ["validate", "a\0b"],
        ["validate", "\udcff.toml"],
        ["list", "\udcff"],
    ],
)
def test_options_are_refused_too(arguments, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    code, told = ended(arguments, monkeypatch, capsys)
    assert code == 2 and "Traceback" not in told and "not foreseen" not in told, told


def test_names_with_spaces_quotes_and_other_letters_work_everywhere(tmp_path, monkeypatch, capsys):
    home = tmp_path / "ein Ordner, 'où' \"x\" 日本 [b]"
    home.mkdir()
    monkeypatch.chdir(home)
    file, run, weights = (
        home / "märkt 'a'.toml",
        home / "rün 'x'",
        home / "gewichte 'x'.safetensors",
    )
    study = (
        '[study]\nname = "misreport-gain"\nauctions = ["all-in"]\nprofiles = 2\neffort = "quick"\n'
    )
    file.write_text(SMALL + "[sweep]\nseeds = 2\n" + study)
    program = os.path.join(os.path.dirname(sys.executable), "flmarket")
    done = subprocess.run(
        [program, "run", file, "--out", run],
        cwd=home,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr

    def flmarket(*arguments):
        monkeypatch.setattr(sys, "argv", ["flmarket", *map(str, arguments)])
        with pytest.raises(SystemExit) as ending:
            main()
        told = capsys.readouterr()
        assert ending.value.code == 0, (arguments, told.err)
        return told.out

    assert json.loads(flmarket("sql", run, "select count(*) as n from rounds", "--json")) == [
        {"n": 2}
    ]
    flmarket("sweep", file, "--out", home / "swéep", "--workers", 1)
    flmarket("study", file, "--out", home / "stüdy")
    flmarket(
        "probe",
        "all-in",
        "--scenario",
        file,
        "--profiles",
        2,
        "--effort",
        "quick",
        "--workers",
        1,
        "--out",
        home / "próbe 'x'.parquet",
    )
    flmarket("train", "regretnet", "--scenario", file, "--steps", 1, "--out", weights)
    flmarket(
        "evaluate",
        f"regretnet@{weights}",
        "--scenario",
        file,
        "--profiles",
        2,
        "--budgets",
        "0.5",
        "--workers",
        1,
    )
    flmarket(
        "report",
        run,
        home / "swéep",
        home / "stüdy",
        home / "próbe 'x'.parquet",
        "--out",
        home / "séite.html",
    )
    assert (home / "séite.html").stat().st_size > 10_000
