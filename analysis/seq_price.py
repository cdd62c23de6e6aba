"""Question: what does `seq-price` buy in markets that it was not trained for, and on coarse grids?

Prints two tables of docs/seq-price.md: the weights in other markets than those of the training, and
the error by the number of losses on a menu. Run it with `python analysis/seq_price.py [--markets
2000]`. docs/second-best.md compares auctions in the markets of the training.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

import flmarket_sim as fm
from flmarket_sim.auctions.learned import favourite

ROOT = Path(__file__).parents[1]
GRIDS = (512, 1, 2, 4, 8, 16, 32)  # parts of a piece of the price curve, the finest first
USELESS = 100.0  # an error bound; one seller with e = 0.28 gives less
HOME = ("iid", "noniid")
ABROAD = {  # name: scenario, overrides
    "IID": ("iid", []),
    "non-IID": ("noniid", []),
    "IID, rates doubled": ("iid", ["owners.rate=[1.0,3.0]"]),
    "IID, rates halved": ("iid", ["owners.rate=[0.25,0.75]"]),
    "IID, square-root owners": ("iid", ['owners.families=["sqrt"]']),
    "IID, exponential owners": ("iid", ['owners.families=["exponential"]']),
    "IID, quadratic and linear": ("iid", ['owners.families=["quadratic","linear"]']),
    "IID, step owners": ("iid", ['owners.families=["step"]']),
    "IID, 5 bidders": ("iid", ["market.bidders=5"]),
    "IID, 50 bidders": ("iid", ["market.bidders=50"]),
}
SELLERS = {  # column: name, options
    "seq-price": ("seq-price", {}),
    "seq-price, reported sizes": ("seq-price", {"size": "reported"}),
    "all-in-critical": ("all-in-critical", {}),
    "proportional-share": ("proportional-share", {}),
}


def bound(loss: np.ndarray, size: np.ndarray) -> np.ndarray:
    """(K,) error bounds under exact OptAggr."""
    weights = fm.aggregation.create("opt-aggr").weights(loss, size)
    return fm.aggregation.error_bound(weights, loss, size)


def error(auction: object, truth: fm.Profiles, budget: np.ndarray) -> np.ndarray:
    """(K,) error bounds of an auction's purchases.

    Records that it does not buy count as records of an owner who sells nothing.
    """
    outcome = auction.decide(truth.bids(), budget, np.random.default_rng(0))
    if outcome.data_size is None:
        return bound(outcome.privacy_loss, truth.data_size)
    rest = np.maximum(truth.data_size - outcome.data_size, 1e-9)
    losses = np.concatenate([outcome.privacy_loss, np.zeros(truth.shape)], axis=1)
    return bound(losses, np.concatenate([outcome.data_size, rest], axis=1))


def mean(errors: np.ndarray) -> float:
    """The mean over valid markets."""
    return float(errors[np.isfinite(errors)].mean())


def abroad(count: int) -> list[dict[str, object]]:
    """Weights of one market deciding in another: mean error bounds, factors uniform in [0.1, 2].

    A market is useless to an auction if its bound is above `USELESS`, or infinite. Means of an
    auction are over its other markets.
    """
    rows = []
    for name, (scenario, overrides) in ABROAD.items():
        market = fm.load_scenario(
            ROOT / f"scenarios/paper/{scenario}.toml", ["seed=777", *overrides]
        )
        truth = fm.draw_profiles(market, count, seed=0)
        budget = np.random.default_rng(1).uniform(0.1, 2.0, count) * truth.total_value()
        row: dict[str, object] = {"market": name}
        for column, (auction, options) in SELLERS.items():
            bounds = error(fm.auctions.create(auction, **options), truth, budget)
            useless = (bounds > USELESS).mean()
            row[column] = f"{bounds[bounds <= USELESS].mean():.3f}" + (
                f" ({useless:.2%} useless)" if useless else ""
            )
        row["first-best"] = f"{fm.auctions.first_best(truth, budget).error_bound.mean():.3f}"
        rows.append(row)
        print(name, flush=True)
    return rows


def grid_sizes(count: int) -> list[dict[str, object]]:
    """What a grid costs: mean error bounds, factors uniform in [0.1, 2], by the parts of a piece.

    The finest grid stands for the whole curve.
    """
    cells: dict[int, dict[str, object]] = {}
    chosen = favourite.PARTS
    for market in HOME:
        scenario = fm.load_scenario(ROOT / f"scenarios/paper/{market}.toml", ["seed=777"])
        truth = fm.draw_profiles(scenario, count, seed=0)
        budget = np.random.default_rng(1).uniform(0.1, 2.0, count) * truth.total_value()
        auction = fm.auctions.create("seq-price")
        whole = 0.0
        for parts in GRIDS:
            favourite.PARTS = parts
            found = mean(error(auction, truth, budget))
            whole = whole or found
            row = cells.setdefault(
                parts, {"parts of a piece": parts, "losses": parts * auction.network.levels}
            )
            row |= {market: f"{found:.4f}", f"{market}, more": f"{found / whole - 1:.2%}"}
    favourite.PARTS = chosen
    return [cells[parts] for parts in sorted(cells)]


def markdown(rows: list[dict[str, object]]) -> str:
    head = list(rows[0])
    lines = [head, ["---"] * len(head), *([row[key] for key in head] for row in rows)]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markets", type=int, default=2000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(markdown(abroad(options.markets)), end="\n\n")
    print(markdown(grid_sizes(options.markets)))
