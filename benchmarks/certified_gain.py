"""Gains by misreport from both sides: what the probe finds, and what is certified for every report.

`python -m benchmarks.certified_gain` prints the table of docs/certified-gain.md. Every line has a
few markets of the paper's kind (families, rates, privacy budgets, budget factors), with fewer and
smaller owners where it says so. Numbers are means of gain / cost over owners.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

import flmarket_sim as fm
from flmarket_sim.owners.family_table import FAMILIES
from flmarket_sim.strategy.certified.box_search import BoxEffort
from flmarket_sim.strategy.certified.certified_gain import certified_gain

SEED = 5


@dataclass(frozen=True)
class Line:
    """An auction, and the markets on which it is certified: n owners, M reported levels."""

    auction: str
    n: int
    levels: int
    markets: int
    nodes: int
    options: tuple[tuple[str, str], ...] = ()


LINES = (
    Line("seq-price", 10, 8, 5, 1),
    Line("seq-price", 10, 8, 5, 1, (("size", "reported"),)),
    Line("record-price", 10, 8, 5, 1),
    Line("all-in-critical", 10, 8, 5, 20_000),
    Line("proportional-share", 10, 8, 5, 20_000),
    Line("all-in", 10, 8, 5, 20_000),
    Line("fair-query", 10, 8, 5, 1),
    Line("posted-price", 10, 8, 5, 20_000),
    Line("pay-as-bid", 10, 8, 5, 20_000),
    Line("regretnet", 10, 8, 1, 1_500),
    Line("m-regretnet", 10, 8, 1, 300),
    Line("dm-regretnet", 2, 1, 1, 6_000),
    Line("dm-regretnet", 3, 1, 1, 6_000),
    Line("dm-regretnet", 3, 2, 1, 10_000),
    Line("dm-regretnet", 3, 8, 1, 6_000),
    Line("dm-regretnet", 10, 8, 1, 300),
)


def small_markets(n: int, markets: int) -> tuple[fm.Profiles, np.ndarray]:
    """Markets of owners with 10 to 200 records, of the paper's families, and their budgets."""
    rng = np.random.default_rng(SEED)
    shape = (markets, n)
    truth = fm.Profiles(
        rng.choice(FAMILIES, shape), rng.uniform(0.5, 1.5, shape), rng.uniform(0.5, 2.0, shape),
        np.round(np.exp(rng.uniform(np.log(10), np.log(200), shape))),
    )  # fmt: skip
    return truth, rng.uniform(0.1, 2.0, markets) * truth.total_value()


def row(line: Line) -> str:
    """One line of the table."""
    truth, money = small_markets(line.n, line.markets)
    auction = fm.auctions.create(line.auction, **dict(line.options))
    found = fm.strategy.probe(auction, truth, money, levels=line.levels, seed=SEED)
    start = time.perf_counter()
    effort = BoxEffort(nodes=line.nodes, at_once=512 if line.nodes == 20_000 else 64)
    proved = certified_gain(
        auction, truth, money, levels=line.levels, effort=effort, known=found.best_utility
    )
    seconds = (time.perf_counter() - start) / truth.rate.size
    gap = proved.relative_gain - found.relative_gain
    money_over_cost = (money[:, None] / found.cost).mean()
    name = " ".join([line.auction, *(value for _, value in line.options)])
    numbers = (found.relative_gain.mean(), proved.relative_gain.mean(), np.median(gap), gap.max())
    cells = " | ".join(f"{number:.{3 if number < 10 else 1}f}" for number in numbers)
    return (
        f"| {name} | {line.n} | {line.levels} | {proved.method} | {cells} | "
        f"{money_over_cost:.0f} | {seconds:.0f} |"
    )


def main() -> None:
    heads = ("auction", "n", "M", "by", "found", "certified", "gap", "worst gap", "money", "s")
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for line in LINES:
        print(row(line), flush=True)


if __name__ == "__main__":
    main()
