"""The two markets of the paper's evaluation, and its auctions with the weights for each market."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from flmarket_sim import auctions
from flmarket_sim.errors import InputError
from flmarket_sim.experiments.market_runs import changed
from flmarket_sim.paper.published_files import FILES, instance_names, located
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.part import Part, Plugin

TOLD_THE_RULE = ("regretnet", "m-regretnet", "dm-regretnet")
BY_RULE = ("dm-regretnet",)  # published for one aggregation rule or the other
GENERAL = "general"  # the weights of all learned auctions: one set for all markets
PUBLISHED = "published-"  # prefix of a learned auction with the weights that the authors published


class PaperMarket(Part):
    """One market of the paper.

    partition    how records are dealt out to owners
    published    the market's part of the authors' file names; None if there are no such files
    tested_on    another partition, on which the published IR violations come out better
    """

    name: str = Field(min_length=1)
    partition: Plugin
    published: str | None = Field(None, min_length=1)
    tested_on: Plugin | None = None

    def of(self, scenario: Scenario, **tables: Any) -> Scenario:
        """The scenario with this market's partition, and with `tables` replaced.

        Another aggregation rule bounds the error that the scenario's does.
        """
        if isinstance(rule := tables.get("aggregation"), dict):
            tables["aggregation"] = {"error": scenario.aggregation.error} | rule
        return changed(scenario, owners__partition=self.partition.model_dump(), **tables)

    def auction_options(self, name: str, rule: str, authors: str | None = None) -> dict[str, Any]:
        """The [auction] table of an auction of the paper in this market, under a rule."""
        if name.startswith(PUBLISHED):
            plain = name.removeprefix(PUBLISHED)
            path = self.published_file(plain, rule, authors)
            if path is None:
                raise InputError(
                    f"there are no published weights of {plain!r} for the market {self.name!r} "
                    f"and {rule!r}"
                )
            return {"name": plain, "weights": str(path)}
        if name == "seq-price":
            return {"name": name, "weights": GENERAL}
        if name in TOLD_THE_RULE:
            return {"name": name, "weights": GENERAL, "rule": rule}
        return {"name": name}

    def auction(self, name: str, rule: str, authors: str | None = None) -> Any:
        return auctions.create(**self.auction_options(name, rule, authors))

    def identity(self, name: str, rule: str, authors: str | None = None) -> str | None:
        """A hash of an auction's weights, on which stored results depend.

        It is empty for an auction without weights, and None for an auction that this market lacks.
        """
        if not self.has(name, rule, authors):
            return None
        table = self.auction_options(name, rule, authors)
        if "weights" not in table:
            return ""
        from flmarket_sim.auctions.learned.weight_names import weights_file

        return file_identity(weights_file(table["weights"], table["name"], rule))

    def identities(
        self, names: Sequence[str], rules: Sequence[str], authors: str | None = None
    ) -> list[str | None]:
        return [self.identity(name, rule, authors) for name in names for rule in rules]

    def published_file(self, name: str, rule: str, authors: str | None) -> Path | None:
        pattern = FILES.get((name, rule if name in BY_RULE else "opt-aggr"))
        if authors is None or pattern is None or self.published is None:
            return None
        return located(authors, pattern.format(self.published))

    def published_instances(self, levels: int, authors: str | None) -> list[Path]:
        """The files of the published instances of M-RegretNet with M levels that are at hand."""
        if authors is None or self.published is None:
            return []
        paths = [located(authors, name) for name in instance_names(levels, self.published)]
        return [path for path in paths if path is not None]

    def has(self, name: str, rule: str, authors: str | None) -> bool:
        """Whether this market has an auction; only some have published weights."""
        return (
            not name.startswith(PUBLISHED)
            or self.published_file(name.removeprefix(PUBLISHED), rule, authors) is not None
        )

    def policies(
        self, names: Sequence[str], rules: Sequence[str], authors: str | None
    ) -> list[tuple[str, str]]:
        """Pairs of an auction and a rule that this market has."""
        return [(name, rule) for name in names for rule in rules if self.has(name, rule, authors)]


PaperMarkets = Annotated[Sequence[PaperMarket], Field(min_length=1)]
Rules = Annotated[Sequence[str], Field(min_length=1)]
RULE_NAMES = {"opt-aggr": "OptAggr", "convl-aggr": "ConvlAggr"}  # as the paper writes them


def file_identity(path: Path) -> str:
    """A hash of a file of weights, on which stored results depend."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def rule_name(rule: str) -> str:
    return RULE_NAMES.get(rule, rule)


def in_panels(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows for a figure with a panel for each market and rule."""
    return [row | {"panel": f"{row['market']}, {rule_name(row['rule'])}"} for row in rows]
