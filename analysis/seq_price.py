"""Question: how much error does `seq-price` leave, beside other auctions, at home and elsewhere?

Makes docs/figures/seq_price.{csv,png} and prints the tables of docs/seq-price.md. Run it with
`python analysis/seq_price.py [--markets 2000]`; `--grid-only` prints the table of grid sizes alone.

All-in-critical appears twice: with truthful owners, and as played, where owners understate their
privacy budgets as far as it pays (in turn, each takes the best of eight budgets given the reports
of the others; there are two turns). seq-price needs one line: its owners have no better report than
the truth.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
import torch

import flmarket_sim as fm
from flmarket_sim.auctions.learned import favourite
from flmarket_sim.report import figures
from flmarket_sim.studies.study import Plot

ROOT = Path(__file__).parents[1]
GRIDS = (512, 1, 2, 4, 8, 16, 32)  # parts of a piece of the price curve, the finest first
FACTORS = np.round(np.arange(0.1, 2.01, 0.1), 1)
USELESS = 100.0  # an error bound; one seller with e = 0.28 gives less
TABLE_FACTORS = (0.1, 0.3, 0.5, 0.8, 1.0, 1.2, 1.5, 1.7, 2.0)
HOME = {"iid": [], "noniid": []}
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
    "seq-price @paper-iid": ("seq-price", {"weights": "paper-iid"}),
    "seq-price @paper-noniid": ("seq-price", {"weights": "paper-noniid"}),
    "seq-price @general": ("seq-price", {"weights": "general"}),
    "seq-price @reported": ("seq-price", {"weights": "paper-iid", "size": "reported"}),
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


def played(auction: object, truth: fm.Profiles, budget: np.ndarray) -> np.ndarray:
    """(K, n) losses sold when owners report the budget that pays best, at its true value."""
    reported = truth.privacy_budget.copy()

    def bids() -> fm.BidBatch:
        return fm.BidBatch(truth.value(reported)[..., None], reported, truth.data_size)

    for _ in range(2):
        for i in range(truth.shape[1]):
            best, best_utility = reported[:, i].copy(), np.full(len(reported), -np.inf)
            for share in np.arange(8, 0, -1) / 8:
                reported[:, i] = share * truth.privacy_budget[:, i]
                outcome = auction.decide(bids(), budget, np.random.default_rng(0))
                utility = truth.utility(outcome.privacy_loss, outcome.payment)[:, i]
                better = utility > best_utility
                best[better], best_utility[better] = reported[better, i], utility[better]
            reported[:, i] = best
    return auction.decide(bids(), budget, np.random.default_rng(0)).privacy_loss


def mean(errors: np.ndarray) -> float:
    """The mean over valid markets."""
    return float(errors[np.isfinite(errors)].mean())


def by_factor(market: str, count: int) -> list[dict[str, object]]:
    """Mean error bounds at every factor, and over factors uniform in [0.1, 2]."""
    truth = fm.draw_profiles(
        fm.load_scenario(ROOT / f"scenarios/paper/{market}.toml", ["seed=777"]), count, seed=0
    )
    value, rows = truth.total_value(), []
    seq_price = fm.auctions.create("seq-price", weights=f"paper-{market}")
    critical = fm.auctions.create("all-in-critical")
    drawn = np.random.default_rng(1).uniform(0.1, 2.0, count)
    for label, factor in [("uniform", drawn), *((f"{f:g}", np.full(count, f)) for f in FACTORS)]:
        budget = factor * value
        errors = {
            "seq-price": error(seq_price, truth, budget),
            "seq-price @general": error(
                fm.auctions.create("seq-price", weights="general"), truth, budget
            ),
            "all-in-critical": error(critical, truth, budget),
            "all-in-critical, as played": bound(played(critical, truth, budget), truth.data_size),
            "proportional-share": error(fm.auctions.create("proportional-share"), truth, budget),
            "first-best": fm.auctions.first_best(truth, budget).error_bound,
        }
        for name, bounds in errors.items():
            valid = np.isfinite(bounds)
            row = {"market": market, "budget_factor": label, "mechanism": name}
            numbers = {
                "error_bound": mean(bounds),
                "ratio": mean(bounds) / errors["first-best"][valid].mean(),
            }
            rows.append(
                row
                | {k: round(v, 4) for k, v in numbers.items()}
                | {"invalid": round(1 - float(valid.mean()), 5)}
            )
        print(market, label, flush=True)
    return rows


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
        auction = fm.auctions.create("seq-price", weights=f"paper-{market}")
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


def table(rows: list[dict[str, object]], market: str) -> str:
    names = list(dict.fromkeys(row["mechanism"] for row in rows))
    labels = ["uniform", *(f"{f:g}" for f in TABLE_FACTORS)]
    cells = {
        (row["mechanism"], row["budget_factor"]): row for row in rows if row["market"] == market
    }
    lines = []
    for name in names:
        line: dict[str, object] = {market: name, "ratio": f"{cells[name, 'uniform']['ratio']:.3f}"}
        lines.append(line | {label: f"{cells[name, label]['error_bound']:.3f}" for label in labels})
    return markdown(lines)


def draw(rows: list[dict[str, object]], path: Path) -> None:
    drawn = [
        row
        | {"budget_factor": float(row["budget_factor"]), "error_bound": float(row["error_bound"])}
        for row in rows
        if row["budget_factor"] != "uniform"
    ]
    label = "budget / value of everything for sale"
    plot = Plot(
        "budget_factor",
        "error_bound",
        "mechanism",
        label,
        "mean error bound",
        log=True,
        panel="market",
    )
    figures.draw(drawn, plot, path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markets", type=int, default=2000)
    parser.add_argument("--abroad-only", action="store_true")
    parser.add_argument("--grid-only", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.grid_only:
        print(markdown(grid_sizes(options.markets)))
        raise SystemExit
    if not options.abroad_only:
        home = [row for market in HOME for row in by_factor(market, options.markets)]
        target = ROOT / "docs" / "figures" / "seq_price"
        with target.with_suffix(".csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, home[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(home)
        draw(home, target.with_suffix(".png"))
        for market in HOME:
            print(table(home, market), end="\n\n")
    print(markdown(abroad(options.markets)), end="\n\n")
    print(markdown(grid_sizes(options.markets)))
