"""The league as a study: its tasks go through the one engine, and its folder is that of a study.

A task is one test of one mechanism in one market of the card, or one training. The rows are one for
each mechanism and market, and one for each mechanism over the whole card.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flmarket_sim.league import measures
from flmarket_sim.league.card import card
from flmarket_sim.league.league_columns import NAMES
from flmarket_sim.league.league_rows import WHOLE, market_row, whole_row
from flmarket_sim.league.places import in_order
from flmarket_sim.league.players import records
from flmarket_sim.league.verdict import verdict
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.studies.study import Auctions, Finding, Plot, Row, Work

TRAINING = "training"
SHOWN = (
    "place", "auction", "over_floor", "gain", "records", "underpaid", "rest_error", "accuracy",
    "invalid", "spent",
)  # fmt: skip


@dataclass(frozen=True)
class League:
    """Mechanisms on every market of the card (`flmarket_sim/league/card.toml`).

    `size` is "quick" or "full": how much is measured in each market.
    """

    name = "league"
    auctions: Auctions
    size: Literal["quick", "full"] = "full"

    def tasks(self, scenario: Scenario) -> list[Work]:
        played = card()
        common = {"card": played.sha256, "size": self.size}
        works: list[Work] = []
        for name in self.auctions:
            works += [
                common | {"market": market.name, "auction": name, "test": test}
                for market in played.markets
                for test in played.tests(market, self.size)
            ]
            works += [
                common | {"market": TRAINING, "auction": name, "seed": seed}
                for seed in range(played.sizes[self.size].seeds)
            ]
        return works

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        played, name = card(), work["auction"]
        sizes = played.sizes[work["size"]]
        if work["market"] == TRAINING:
            found = measures.attempted(measures.trained, name, played, work["seed"])
        else:
            market, test = played.market(work["market"]), measures.TESTS[work["test"]]
            found = measures.attempted(test, name, played, market, sizes)
        return [{"auction": name, "market": work["market"]} | found]

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        found: dict[tuple[str, str], list[Row]] = {}
        for row in (row for task in results for row in task):
            content = {key: row[key] for key in row if key not in ("auction", "market")}
            found.setdefault((row["auction"], row["market"]), []).append(content)
        rows: list[Row] = []
        whole: list[Row] = []
        for name in self.auctions:
            own = [market_row(name, market, found[name, market.name]) for market in card().markets]
            trainings = found[name, TRAINING]
            trained = [row["accuracy"] for row in trainings if "accuracy" in row]
            reasons = dict.fromkeys(row["why_not"] for row in trainings if "why_not" in row)
            played = {"card": card().version, "size": self.size}
            rows += [row | played for row in own]
            over_card = whole_row(name, own, trained, "; ".join(reasons))
            whole.append(over_card | {"records": records(name)} | played)
        whole = in_order(whole)
        label = "mean error / floor over the card"
        plot = Plot("auction", "over_floor", "market", "", label, bars=True, level=1.0, top=4.0)
        sentences = [verdict(row) for row in whole]
        sentences.append(
            f"Card {card().version} of the league, {self.size} size, sha256 {card().sha256[:16]}"
        )
        table = _same_columns([*whole, *rows])
        shown = table[: len(whole)]
        return Finding(table, plot, sentences, shown, shown=SHOWN, shown_rows=shown)


def _same_columns(rows: list[Row]) -> list[Row]:
    """The rows with every column of any of them: what was not measured is empty."""
    first = ("auction", "market", *NAMES)
    names = list(dict.fromkeys([*first, *(key for row in rows for key in row)]))
    return [{name: row.get(name) for name in names} for row in rows]


__all__ = ["WHOLE", "League"]
