"""The behaviour of docs/writing-a-behaviour.md is short, and runs as the page says."""

import numpy as np

import flmarket_sim as fm

from .page_market import market_of_page

PAGE = "docs/writing-a-behaviour.md"


def test_the_behaviour_of_the_page_is_short_and_runs_in_a_market(tmp_path):
    told = market_of_page(PAGE, "haggler", 30, tmp_path)
    assert "50 haggler" in told
    bids = [
        bid
        for bid in fm.read_events(tmp_path / "run", "bid").to_pylist()
        if bid["behaviour"] == "haggler"
    ]
    factors = np.array([bid["value"] / bid["true_value"] for bid in bids])
    assert min(bid["round"] for bid in bids) == 5
    assert np.isclose(factors, 1.0).any() and factors.max() > 1.1 and factors.min() > 1 - 1e-9
    offered = fm.sql(
        tmp_path / "run", "select avg(utility - truthful_utility) as gain from counterfactual"
    ).to_pylist()
    assert offered[0]["gain"] > 0
