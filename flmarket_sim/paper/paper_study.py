"""Options that the studies of the paper share: its markets, auctions and aggregation rules."""

# Annotations are evaluated here, because the registry reads them from the studies' own modules.

from dataclasses import dataclass
from typing import Any

from flmarket_sim import aggregation
from flmarket_sim.paper.paper_market import PaperMarket, PaperMarkets, Rules
from flmarket_sim.studies.study import Names, Work


@dataclass(frozen=True, kw_only=True)
class PaperStudy:
    """Options of a study that compares auctions and rules in the markets of the paper.

    `authors` is the folder of the weights that the paper's authors published, or None. `quick`
    holds the smaller options of `flmarket reproduce --quick`, which have replaced the options here.
    """

    markets: PaperMarkets
    auctions: Names
    rules: Rules = ("opt-aggr", "convl-aggr")
    authors: str | None = None
    quick: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        """Creates every rule and auction once, so that errors come before the study runs."""
        for rule in self.rules:
            aggregation.create(rule)
        for market in self.markets:
            for name, rule in market.policies(self.auctions, self.rules, self.authors):
                market.auction(name, rule, self.authors)

    def work(self, market: PaperMarket) -> Work:
        """Plain data of a task that compares all auctions and rules in one market."""
        return {
            "market": market.model_dump(),
            "auctions": self.auctions,
            "rules": self.rules,
            "authors": self.authors,
            "weights": market.identities(self.auctions, self.rules, self.authors),
        }
