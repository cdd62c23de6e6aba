"""The cheat of docs/writing-a-cheat.md is short, and runs as the page says."""

import flmarket_sim as fm

from .page_market import market_of_page

PAGE = "docs/writing-a-cheat.md"


def test_the_cheat_of_the_page_is_short_and_runs_in_a_market(tmp_path):
    told = market_of_page(PAGE, "capped", 20, tmp_path)
    assert "capped " in told
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
