"""The tables of names in docs/api.md: `python -m docs.api` writes them anew.

On the site, a description from the docstrings follows each table (docs/site_hooks.py).
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import flmarket_sim as fm

PAGE = Path(__file__).with_name("api.md")
BETWEEN = re.compile(r"(<!-- made by:.*?-->\n).*?(<!-- end -->)", re.DOTALL)
ROOMS = ("aggregation", "auctions", "perturbation", "privacy", "strategy", "testing")
CONTRACTS = (  # what the author of a plug-in writes
    "auctions.auction.Auction",
    "auctions.auction.Outcome",
    "auctions.auction.KnowsTheError",
    "auctions.auction.SellsInTurn",
    "aggregation.rule.AggregationRule",
    "aggregation.convex_rule.ConvexRule",
    "aggregation.robust.robust_rule.RobustRule",
    "contribution.contribution_rule.ContributionRule",
    "contribution.contribution_rule.Game",
    "perturbation.perturbation.Perturbation",
    "checks.check.Check",
    "checks.check.Evidence",
    "checks.check.PastRound",
    "strategy.behaviours.behaviour.Behaviour",
    "strategy.behaviours.behaviour.LearningBehaviour",
    "owners.valuation_family.ValuationFamily",
    "learning.dataset.DatasetSource",
    "learning.dataset.Dataset",
    "learning.partitions.Partition",
    "learning.buyer_model.BuyerModel",
    "learning.optimizers.Optimizer",
    "learning.schedules.Schedule",
    "market.delays.Delay",
    "studies.study.Study",
    "studies.study.Finding",
)


def row(name: str, thing: object) -> str:
    """A name, where its documentation is, and the first sentence of it."""
    place = f"{thing.__module__}.{thing.__qualname__}"  # type: ignore[attr-defined]
    first = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    return f"| `{name}` | `{place}` | {first.replace('|', chr(92) + '|')} |"


def table(rows: list[str]) -> str:
    return "\n".join(["| name | defined as | what it is |", "|---|---|---|", *rows])


def public_names() -> str:
    """Everything in `import flmarket_sim as fm` that is not a room."""
    named = {name: getattr(fm, name) for name in sorted(fm.__all__, key=str.lower)}
    return table(
        [row(f"fm.{name}", thing) for name, thing in named.items() if not inspect.ismodule(thing)]
    )


def room_names() -> str:
    """The public classes and functions of the rooms that users call."""
    rows = []
    for room in ROOMS:
        module = import_module(f"flmarket_sim.{room}")
        for name in sorted(module.__all__, key=str.lower):
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                rows.append(row(f"fm.{room}.{name}", thing))
    return table(rows)


def contracts() -> str:
    """The contracts of plug-ins."""
    rows = []
    for place in CONTRACTS:
        module, _, name = place.rpartition(".")
        rows.append(row(name, getattr(import_module(f"flmarket_sim.{module}"), name)))
    return table(rows)


def page(text: str) -> str:
    """The page with its tables as they are now, in the order in which it marks them."""
    made = iter((public_names(), room_names(), contracts()))
    return BETWEEN.sub(lambda mark: f"{mark[1]}{next(made)}\n{mark[2]}", text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
