"""`markets`: markets of extreme numbers through every built-in auction and aggregation rule.

A trial is a batch of markets, so that many fit into a minute.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import flmarket_sim as fm
from flmarket_sim.plugins.registry import BUILT_IN

from .extreme_markets import ExtremeMarkets, draw
from .market_checks import (
    REFUSED,
    Violation,
    check_auction,
    check_rule,
    check_truthful,
    fewest_owners,
)
from .outcome import Failure, Outcome, Progress
from .watched import Lost, perform

BATCH = 200
AUCTIONS = tuple(name for name in BUILT_IN["auction"] if name != "mfg-regretnet")  # it needs a file
SOLVERS = ("constrained", "opt-aggr-scs")  # a convex problem a market: few markets
FEW = 2


Told = tuple[str, str, str, str]  # auction or rule, check, detail, Python that shows it


class Found(NamedTuple):
    """What a batch showed: markets played, and violations with Python that shows each again."""

    markets: int
    violations: list[Told]


class MarketTrials:
    """Batches of markets. Batch number i of a seed is always the same."""

    def __init__(self, seed: int, batch: int = BATCH, names: tuple[str, ...] = ()) -> None:
        self.seed, self.batch = seed, batch
        self.auctions = [fm.auctions.create(name) for name in names or AUCTIONS]
        self.rules = [fm.aggregation.create(name) for name in BUILT_IN["aggregation"]]

    def __call__(self, index: int) -> Found:
        rng = np.random.default_rng([self.seed, index])
        found: list[Told] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            markets = draw(rng, self.batch)
            for auction in self.auctions:
                found += self._of_auction(auction, markets, rng)
            loss, size = _sales(markets, rng)
            for rule in self.rules:
                found += _of_rule(rule, loss, size)
        return Found(len(markets), found)

    def _of_auction(
        self, auction: Any, markets: ExtremeMarkets, rng: np.random.Generator
    ) -> list[Told]:
        """The first violation of each check is shown in a market of as few owners as possible."""
        found: list[Told] = []
        for violation in check_auction(auction, markets):
            known = any(check == violation.check for _, check, _, _ in found)
            if known or violation.check == REFUSED:
                found.append(_told(auction.name, violation))
            else:
                found.append(_smallest(auction, markets.take([violation.market]), violation))
        for violation in check_truthful(auction, markets, rng):
            code = auction_code(auction, markets.take([violation.market]))
            found.append(_told(auction.name, violation, code))
        return found


def _smallest(auction: Any, market: ExtremeMarkets, violation: Violation) -> Told:
    def shown(kept: list[int]) -> list[Violation]:
        found = check_auction(auction, market.owners(kept))
        return [one for one in found if one.check == violation.check]

    kept = fewest_owners(market.truth.shape[1], lambda some: bool(shown(some)))
    again = [*shown(kept), violation][0]
    return _told(auction.name, again, auction_code(auction, market.owners(kept)))


def _told(name: str, violation: Violation, code: str = "") -> Told:
    return name, violation.check, violation.detail, code


def auction_code(auction: Any, market: ExtremeMarkets) -> str:
    money = f"np.array([{float(market.money[0])}])"
    create = f"fm.auctions.create({auction.name!r})"
    return f"{create}.decide({market.code()}, {money}, np.random.default_rng(0))"


def _sales(markets: ExtremeMarkets, rng: np.random.Generator) -> tuple[Any, Any]:
    """Privacy losses as sold anywhere, by some of the owners or by nobody."""
    loss = np.minimum(markets.truth.privacy_budget, 1e90)
    share = rng.choice([0.0, 0.3, 1.0], (len(markets), 1))
    return np.where(rng.random(loss.shape) < share, loss, 0.0), markets.truth.data_size


def _of_rule(rule: Any, loss: Any, size: Any) -> list[Told]:
    rows = slice(FEW) if rule.name in SOLVERS else slice(None)
    loss, size = loss[rows], size[rows]
    found: list[Told] = []
    for violation in check_rule(rule, loss, size):
        known = any(check == violation.check for _, check, _, _ in found)
        k = [violation.market]
        code = "" if known else _rule_code(rule, loss[k], size[k], violation.check)
        found.append(_told(rule.name, violation, code))
    return found


def _rule_code(rule: Any, loss: Any, size: Any, check: str) -> str:
    """Python that shows a violation with as few owners as possible."""

    def shows(kept: list[int]) -> bool:
        return any(one.check == check for one in check_rule(rule, loss[:, kept], size[:, kept]))

    kept = fewest_owners(loss.shape[1], shows)
    numbers = f"{loss[:, kept].tolist()}, {size[:, kept].tolist()}"
    return f"fm.aggregation.create({rule.name!r}).weights({numbers})"


def attack(
    count: int, seed: int, workers: int, progress: Progress, only: int | None = None
) -> Outcome:
    """So many markets, in batches; or the batch with the number `only`."""
    outcome, began = Outcome("markets"), time.monotonic()
    batches = range(-(-count // BATCH)) if only is None else [only]
    tally: Counter[tuple[str, str]] = Counter()
    played = 0
    for index, found in perform(partial(MarketTrials, seed), batches, workers):
        outcome.trials += 1
        again = f"python -m benchmarks.attack markets --seed {seed} --only {index}"
        if isinstance(found, Lost):
            outcome.failures.append(Failure(index, "hang or death", found.why, again))
            continue
        played += found.markets
        for policy, check, detail, code in found.violations:
            tally[policy, check] += 1
            if check != REFUSED:
                what = f"{detail}\n  {code}" if code else detail
                outcome.failures.append(Failure(index, f"{policy}: {check}", what, again))
        progress(outcome.trials, len(batches), len(outcome.failures))
    outcome.rows = table(tally, played)
    outcome.seconds = time.monotonic() - began
    return outcome


def table(tally: Counter[tuple[str, str]], played: int) -> list[dict[str, Any]]:
    """A row for each auction and rule: markets, and how many showed each violation."""
    checks = list(dict.fromkeys(check for _, check in sorted(tally)))
    policies = [*AUCTIONS, *BUILT_IN["aggregation"]]
    return [
        {"policy": name, "markets": played} | {check: tally[name, check] for check in checks}
        for name in policies
    ]
