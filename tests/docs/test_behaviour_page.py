"""The behaviour of docs/writing-a-behaviour.md is short, and runs as the page says."""

import os
import subprocess
import sys

import numpy as np

import flmarket_sim as fm

from .test_docs import blocks

PAGE = "docs/writing-a-behaviour.md"


def test_the_behaviour_of_the_page_is_short_and_runs_in_a_market(tmp_path):
    code, scenario = blocks(PAGE, "python")[0], blocks(PAGE, "toml")[0]
    assert len(code.splitlines()) <= 30
    (tmp_path / "haggler.py").write_text(code)
    (tmp_path / "hagglers.toml").write_text(scenario)
    program = os.path.join(os.path.dirname(sys.executable), "flmarket")
    done = subprocess.run(
        [program, "run", "hagglers.toml", "--out", "run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "50 haggler" in done.stdout
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
