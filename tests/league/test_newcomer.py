"""The newcomer of the README enters the league, on the real card."""

import re
import time

from typer.testing import CliRunner

from flmarket_sim.cli.app import app
from flmarket_sim.league.entries import read_entry
from tests.support.paths import ROOT

README = ROOT / "README.md"
ENTER = ["league", "enter"]


def test_the_newcomer_of_the_readme_gets_a_row_in_two_minutes(tmp_path, monkeypatch):
    """She sells in so few draws of one market that this one has no interval."""
    (code,) = re.findall(r"```python\n(# my_auction.py\n.*?)```", README.read_text(), re.DOTALL)
    assert len(code.splitlines()) <= 30
    (tmp_path / "my_auction.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    began = time.process_time()
    result = CliRunner().invoke(app, [*ENTER, "my_auction.py:MyAuction", "--quick"])
    assert result.exit_code == 0, result.output
    assert time.process_time() - began < 120
    assert "my_auction.py:MyAuction has no place among" in " ".join(result.output.split())
    entry = read_entry(tmp_path / "my_auction.py-MyAuction.json")
    assert entry["whole"]["invalid"] > 0.1
    again = CliRunner().invoke(app, [*ENTER, "my_auction.py:MyAuction", "--quick"])
    assert again.exit_code == 1
    assert "--force replaces it" in str(again.exception)
    elsewhere = [*ENTER, "my_auction.py:MyAuction", "--out", "no/such/folder.json"]
    assert "is not a folder" in str(CliRunner().invoke(app, elsewhere).exception)
