"""The cheat of docs/writing-a-cheat.md is short, and runs as the page says."""

import os
import subprocess
import sys

import flmarket_sim as fm

from .test_docs import blocks

PAGE = "docs/writing-a-cheat.md"


def test_the_cheat_of_the_page_is_short_and_runs_in_a_market(tmp_path):
    code, scenario = blocks(PAGE, "python")[0], blocks(PAGE, "toml")[0]
    assert len(code.splitlines()) <= 20
    (tmp_path / "capped.py").write_text(code)
    (tmp_path / "capped.toml").write_text(scenario)
    program = os.path.join(os.path.dirname(sys.executable), "flmarket")
    done = subprocess.run(
        [program, "run", "capped.toml", "--out", "run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "capped " in done.stdout
    truth = fm.read_events(tmp_path / "run", "cheat").to_pylist()
    assert {row["cheat"] for row in truth} == {"capped"}
    for row in truth:
        assert row["true_privacy_loss"] == row["released_at"] == min(row["privacy_loss"], 0.4)
    accused = fm.sql(
        tmp_path / "run",
        "select count(*) n from verdict v join cheat c on c.sender = v.receiver "
        "and c.round = v.round and c.buyer = v.buyer where v.accused",
    ).to_pylist()[0]["n"]
    assert accused == sum(row["released_at"] < row["privacy_loss"] for row in truth)
