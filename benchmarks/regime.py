"""What kappa does to who is worth buying, and what auctions of other regimes lose by it.

The markets are the paper's, with V = kappa / e^2. The first column of numbers is first-best's own:
the share of its privacy loss that the smaller half of the bidders sells. The others are the mean of
error / first-best over the markets in which each auction buys something.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import flmarket_sim as fm
from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.market_error import MarketError, error_of_kappa
from flmarket_sim.aggregation.rule import weights_in

SCENARIOS = Path(__file__).parents[1] / "scenarios"
MARKETS, SEED, FACTOR = 200, 2, 0.3
KAPPAS = (8.0, 80.0, 800.0, 4920.0)  # 4920 is Laplace noise on the 615 coordinates of NSL-KDD


def mechanisms(error: MarketError) -> dict[str, fm.auctions.Auction]:
    """The auctions of the table, set for the market."""
    made = {
        f"{name}, {value}": fm.auctions.create(name, value=value)
        for name in ("all-in-critical", "proportional-share")
        for value in ("records-loss", "precision")
    }
    told = {name: fm.auctions.auction_in(auction, error) for name, auction in made.items()}
    seq_price = fm.auctions.create("seq-price")  # without being told it decides for kappa = 8
    return told | {
        "seq-price for kappa = 8": seq_price,
        "seq-price": fm.auctions.auction_in(seq_price, error),
    }


def row(market: str, kappa: float) -> str:
    """One line of the table."""
    scenario = fm.load_scenario(SCENARIOS / f"paper/{market}.toml")
    truth = fm.draw_profiles(scenario, MARKETS, seed=SEED)
    money, error = FACTOR * truth.total_value(), error_of_kappa(kappa)
    best = fm.auctions.first_best(truth, money, error=error)
    small = truth.data_size <= np.median(truth.data_size, axis=1, keepdims=True)
    sold = np.where(small, best.privacy_loss, 0.0).sum() / best.privacy_loss.sum()
    cells = [f"{sold:.0%}"]
    for auction in mechanisms(error).values():
        loss = auction.decide(truth.bids(), money, np.random.default_rng(SEED)).privacy_loss
        weights = weights_in(fm.aggregation.create("opt-aggr"), loss, truth.data_size, error)
        bound = error_bound_in(error, weights, loss, truth.data_size).total
        valid = np.isfinite(bound)
        cells.append(f"{(bound[valid] / best.error_bound[valid]).mean():.2f}")
    return f"| {market} | {kappa:g} | " + " | ".join(cells) + " |"


def main() -> None:
    heads = ["market", "kappa", "sold by the smaller half", *mechanisms(error_of_kappa(8.0))]
    print(f"## Who is worth buying, {MARKETS} markets a line, budget factor {FACTOR:g}\n")
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for market in ("iid", "noniid"):
        for kappa in KAPPAS:
            print(row(market, kappa), flush=True)


if __name__ == "__main__":
    main()
