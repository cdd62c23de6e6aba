"""What the league measures of one mechanism in one market of the card.

Each function is one test and returns the columns of league_columns.py that it knows. A mechanism
that cannot play a market (a network for ten bidders among three), or a test that needs one outcome
where a mechanism draws lots, leaves its columns empty and says why in `why_not`. A mechanism that
breaks the contract of auctions stops the league.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim import aggregation
from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.market_error import MarketError
from flmarket_sim.aggregation.rule import weights_in
from flmarket_sim.auctions import auction_in, named
from flmarket_sim.auctions.auction import (
    Auction,
    Outcome,
    check_outcome,
    records_sold,
    sales_and_rest,
)
from flmarket_sim.auctions.play import Player, expected_utility, measured_against
from flmarket_sim.errors import ContractError, FlmarketError
from flmarket_sim.experiments.market_runs import auction_table, changed, load_data
from flmarket_sim.league.card import Card, CardMarket, Sizes
from flmarket_sim.league.card_draws import draws
from flmarket_sim.market.simulation import rounds_only
from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.owners.valuation import covers
from flmarket_sim.statistics import estimate
from flmarket_sim.strategy.coalitions import coalition, false_names
from flmarket_sim.strategy.probe import probe
from flmarket_sim.strategy.rest_points import REST, best_response_dynamics
from flmarket_sim.studies.study import Row, spread

Floats = NDArray[np.float64]
MEMBERS = 3  # of a coalition, which never is the whole market
NAMES = 2  # of one person
SWEEPS = 10  # of best responses
REPEATS = 3  # of the clock; the quickest counts
LONG = 2.0  # seconds after which the clock needs no repetition
NOTHING = 1e-7  # gains that are less are rounding: networks compute in single precision


def decisions(name: str, card: Card, market: CardMarket, sizes: Sizes) -> Row:
    """Errors, money and surplus where everybody tells the truth; and the time of a decision."""
    scenario, error = card.scenario(market), market.error()
    truth, budget = draws(card, market, sizes.decisions)
    auction, bids = auction_in(named(name), error), truth.bids(scenario.market.levels)
    player = Player.of(auction, bids, budget, scenario.seed)
    seconds: list[float] = []
    while len(seconds) < REPEATS and sum(seconds) < LONG:
        began = time.perf_counter()
        outcome = player.decide(bids, budget)
        seconds.append(time.perf_counter() - began)
    errors = errors_of(check_outcome(name, outcome, bids, budget), truth, error)
    utility, cost = expected_utility(auction, truth, bids, budget, scenario.seed)
    surplus = utility.sum(axis=1) / budget
    shortfall = np.maximum(-utility, 0.0).sum(axis=1)
    row: Row = {"errors": errors.tolist()} | spread("error", estimate(errors, truth.population))
    row["invalid"] = float(1.0 - np.isfinite(errors).mean())
    row |= spread("spent", estimate(outcome.payment.sum(axis=1) / budget, truth.population))
    row |= spread("surplus", estimate(surplus, truth.population))
    row["underpaid"] = float(shortfall.sum() / measured_against(truth, cost).sum())
    sells = cost > 0
    misses = sells & (utility < -NOTHING * cost)
    row["underpaid_owners"] = float(misses.sum() / max(sells.sum(), 1))
    row["milliseconds"] = 1e3 * min(seconds) / len(budget)
    return row


def lies(name: str, card: Card, market: CardMarket, sizes: Sizes) -> Row:
    """What the best misreports that are found gain, as a share of what the sales cost."""
    scenario = card.scenario(market)
    truth, budget = draws(card, market, sizes.probed)
    auction = auction_in(named(name), market.error())
    return gain_of_lies(auction, truth, budget, scenario.seed, sizes.effort)


def gain_of_lies(auction: Auction, truth: Profiles, budget: Floats, seed: int, effort: str) -> Row:
    """The gain of misreports in these markets, and the share of owners who gain.

    Gains and costs are summed before they are divided: an owner whose sale costs her next to
    nothing would decide a mean of shares.
    """
    found = probe(auction, truth, budget, seed=seed, effort=effort)
    cost = found.cost.sum(axis=1)
    gain = notable(found.gain, cost[:, None]).sum(axis=1)
    row = spread("gain", estimate(gain, truth.population, cost))
    row["gaining"] = found.share_gaining().mean
    return row


def names(name: str, card: Card, market: CardMarket, sizes: Sizes) -> Row:
    """What an owner gains by a second name, above what she gains by lies under one."""
    scenario = card.scenario(market)
    truth, budget = draws(card, market, sizes.together)
    auction, levels = auction_in(named(name), market.error()), scenario.market.levels
    first = np.zeros(len(budget), np.int64)  # bidders come in a random order
    split = false_names(
        auction, truth, budget, first, NAMES, effort="quick", seed=scenario.seed, levels=levels
    )
    gain = split.many_lying - np.maximum(split.one_lying, split.one_truthful)
    gain = notable(gain, split.cost)
    return spread("names_gain", estimate(gain, truth.population, split.cost))


def coalitions(name: str, card: Card, market: CardMarket, sizes: Sizes) -> Row:
    """What owners gain who report as one."""
    scenario = card.scenario(market)
    truth, budget = draws(card, market, sizes.together)
    auction, levels = auction_in(named(name), market.error()), scenario.market.levels
    members = np.zeros(truth.shape, bool)
    members[:, : min(MEMBERS, truth.shape[1] - 1)] = True
    found = coalition(
        auction, truth, budget, members, effort="quick", seed=scenario.seed, levels=levels
    )
    worth = np.where(members, truth.value(truth.privacy_budget), 0.0).sum(axis=1)
    gain = notable(found.gain, worth)
    return spread("coalition_gain", estimate(gain, truth.population, worth))


def rest(name: str, card: Card, market: CardMarket, sizes: Sizes) -> Row:
    """The error where owners who answer each other's lies end, over that under truth.

    Under truth it is the error of `decisions`, where everybody sells what she is asked to. At the
    end nobody is that simple: owners decline what costs them more than it pays.
    """
    scenario, error = card.scenario(market), market.error()
    truth, budget = draws(card, market, sizes.rest)
    auction, levels = auction_in(named(name), error), scenario.market.levels
    ended = best_response_dynamics(
        auction, truth, budget, effort="quick", seed=scenario.seed, max_sweeps=SWEEPS, levels=levels
    )
    bids = truth.bids(levels)
    before = errors_of(Player.of(auction, bids, budget).decide(bids, budget), truth, error)
    after = errors_of_liars(auction, truth, ended.reports, budget, error)
    end = np.where(np.isfinite(before) & np.isfinite(after), after, np.nan)
    row = spread("rest_error", estimate(end, truth.population, before))
    row["invalid_at_rest"] = float((~np.isfinite(after)).mean())
    row["resting"] = float((ended.ending == REST).mean())
    return row


def trained(name: str, card: Card, seed: int) -> Row:
    """The accuracy of a model that a market with this mechanism trains."""
    scenario = changed(card.training_scenario(seed), auction=auction_table(name))
    rounds = rounds_only(scenario, load_data(scenario))
    return {"accuracy": next(row["accuracy"] for row in reversed(rounds) if row["accuracy"])}


def attempted(test: Callable[..., Row], name: str, *arguments: Any) -> Row:
    """The columns of a test; `why_not` where the mechanism cannot take it.

    A mechanism that breaks the contract of auctions is refused: no number of it would be true.
    """
    try:
        return test(name, *arguments)
    except ContractError:
        raise
    except FlmarketError as error:
        return {"why_not": str(error).splitlines()[0]}


def notable(gain: Floats, scale: Floats) -> Floats:
    """Gains, with those that are rounding or losses as 0."""
    return np.where(gain > NOTHING * scale, gain, 0.0)


def errors_of(outcome: Outcome, truth: Profiles, error: MarketError) -> Floats:
    loss, size = sales_and_rest(outcome, truth.data_size)
    weights = weights_in(aggregation.create("opt-aggr"), loss, size, error)
    return error_bound_in(error, weights, loss, size).total


def errors_of_liars(
    auction: Auction, truth: Profiles, reports: BidBatch, budget: Floats, error: MarketError
) -> Floats:
    """(K,) errors for the records that owners have, where those who would lose decline.

    Weights follow the reports, because the broker knows nothing else.
    """
    outcome = Player.of(auction, reports, budget).decide(reports, budget)
    cost = truth.value(outcome.privacy_loss, records_sold(outcome, reports))
    accepts = covers(outcome.payment, cost)
    part = getattr(outcome, "data_size", None)  # a plug-in's own outcome class may lack it
    kept = Outcome(np.where(accepts, outcome.privacy_loss, 0.0), outcome.payment, part)
    weights = weights_in(
        aggregation.create("opt-aggr"), *sales_and_rest(kept, reports.data_size), error
    )
    return error_bound_in(error, weights, *sales_and_rest(kept, truth.data_size)).total


TESTS = {
    "decisions": decisions,
    "lies": lies,
    "names": names,
    "coalitions": coalitions,
    "rest": rest,
}
