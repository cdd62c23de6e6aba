"""Learned auctions: 100,000 profiles of 10 bidders decided at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

import flmarket_sim as fm
from benchmarks.timing import best_of


def main() -> None:
    torch.set_num_threads(2)
    truth = fm.draw_profiles(
        fm.load_scenario(Path(__file__).parents[1] / "scenarios/paper/iid.toml"), 1000
    )
    many = truth.take(np.tile(np.arange(1000), 100))
    bids, money = many.bids(), 0.5 * many.total_value()
    names = ("seq-price", "dm-regretnet", "m-regretnet", "regretnet", "all-in-critical", "all-in")
    auctions = [fm.auctions.create(name) for name in names]
    times = best_of(
        5, *(lambda a=a: a.decide(bids, money, np.random.default_rng(0)) for a in auctions)
    )
    print("## 100,000 profiles of 10 bidders decided\n\n| auction | time |\n|---|---|")
    for name, seconds in zip(names, times, strict=True):
        print(f"| {name} | {seconds:.2f} s |")


if __name__ == "__main__":
    main()
