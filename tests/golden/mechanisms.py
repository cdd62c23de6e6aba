"""What auctions, rules and perturbations do in a few small reference markets.

Each reference is a function without arguments that returns named arrays, numbers and texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import flmarket_sim as fm
from flmarket_sim.aggregation.market_error import coordinate_error, error_of_kappa
from flmarket_sim.aggregation.rule import takes_variance, weights_in
from flmarket_sim.auctions.auction import (
    StatesChances,
    auction_in,
    certified_parts,
    check_outcome,
    claims_of,
)
from flmarket_sim.auctions.play import Player, expected_utility
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.perturbation.perturbation import message_bytes, vector_error
from flmarket_sim.plugins.registry import perturbations
from flmarket_sim.privacy.audit_event import worst_pairs
from flmarket_sim.privacy.privacy_audit import PrivacyClaim, audit, audit_batches
from tests.support.profiles import random_profiles

Reference = Callable[[], dict[str, Any]]
FAMILIES = ("linear", "quadratic", "sqrt", "exponential", "step")
VALUES = ("records-loss", "precision", "loss-squared", "tempered")
AUCTIONS = (
    *("all-in", "all-in-critical", "proportional-share", "clock", "fair-query", "posted-price"),
    *("pay-as-bid", "agn", "greedy-ii", "random-sample", "gravin-3", "gravin-2", "vcg-k", "csra"),
    *("mfg-pricing", "stackelberg", "contract-menu", "shapley-pay", "fmore", "virtual-cost"),
    *(f"{name}[value={value}]" for name in ("all-in", "clock", "greedy-ii") for value in VALUES),
    *("csra[sells=equal]", "posted-price[price=0.7]", "clock[cap=0.4]", "vcg-k[loss=0.6]"),
    *("random-sample[purse=shared]", "fmore[payment=second]", "contract-menu[family=sqrt]"),
    *("shapley-pay[exact=3]", "virtual-cost[levels=3]"),
)
RULES: dict[str, dict[str, Any]] = {
    "opt-aggr": {},
    "opt-aggr-paper": {},
    "opt-aggr-winners": {},
    "convl-aggr": {},
    "var-opt": {},
    "uniform": {},
    "constrained": {"cap": 0.4},
    "constrained and fair": {"fairness": 0.5},
    "constrained to few": {"sparsity": 2, "cap": 0.7},
    "constrained bias": {"bias": 0.3, "cap": 0.6},
    "constrained in all ways": {"cap": 0.5, "fairness": 0.3, "sparsity": 3, "bias": 0.9},
}
PERTURBATIONS: dict[str, dict[str, Any]] = {
    "laplace": {},
    "priv-unit": {},
    "priv-unit of a direction": {"length": "unit"},
    "proj-unit": {"size": 3},
    "proj-unit of a direction": {"size": 4, "length": "unit"},
    "duchi-l2": {},
    "duchi-linf": {},
    "piecewise": {},
    "gaussian": {"delta": 1e-3},
}


def markets() -> Iterator[tuple[Profiles, int]]:
    """Owners, and the levels of their reports: few and more, alike and different, one alone."""
    yield random_profiles(np.random.default_rng(1), 3, 5, FAMILIES), 8
    yield random_profiles(np.random.default_rng(2), 2, 6, ("step",)), 4
    yield random_profiles(np.random.default_rng(3), 1, 24), 3
    yield random_profiles(np.random.default_rng(4), 2, 1, FAMILIES), 2
    alike = np.ones((2, 4))
    yield Profiles(np.full((2, 4), "step"), alike, alike, alike * 10), 1


def decisions(text: str) -> dict[str, Any]:
    """What an auction decides, pays and promises in all markets, for little money and for much."""
    name, _, options = text.partition("[")
    given = dict([options.removesuffix("]").split("=")]) if options else {}
    numbers = {key: json.loads(v) if v[0].isdigit() else v for key, v in given.items()}
    auction = fm.auctions.create(name, **numbers)
    found: dict[str, Any] = {
        "guarantees": auction.guarantees,
        "claims": claims_of(auction),
        "certified": list(certified_parts(auction)),
    }
    for place, (truth, levels) in enumerate(markets()):
        bids = truth.bids(levels)
        for share in (0.15, 0.6) if name == "virtual-cost" else (0.0, 0.15, 0.6, 3.0):
            money = share * truth.total_value()
            for error in (coordinate_error(), error_of_kappa(300.0, 2.0)):
                told = auction_in(auction, error)
                outcome = told.decide(bids, money, np.random.default_rng(5))
                outcome = check_outcome(name, outcome, bids, money)
                sold = [] if outcome.data_size is None else outcome.data_size
                found[f"market {place}, {share:.0%} of the money, {error.kind}"] = [
                    outcome.privacy_loss,
                    outcome.payment,
                    sold,
                ]
    truth = next(markets())[0]
    bids, money = truth.bids(), 0.5 * truth.total_value()
    if hasattr(auction, "menus"):
        found["menus"] = list(auction.menus(truth.data_size, money))
    if isinstance(auction, StatesChances):
        found["chances"] = list(auction.expected(bids, money))
    player = Player.of(auction, bids, money, seed=3, draws=4)
    found["means"] = list(player.means(bids, money))
    found["lots"] = list(player.lots_of_market(bids.take([1]), float(money[1]), 3))
    found["utility"] = list(expected_utility(player.auction, truth, bids, money, 2))
    return found


def weights(text: str) -> dict[str, Any]:
    """The weights of a rule in markets where some sell nothing, with two readings of the error."""
    name = text.split()[0]
    rule = fm.aggregation.create(name, **RULES[text])
    rng = np.random.default_rng(7)
    found = {}
    for n in (1, 2, 7) if RULES[text] else (1, 2, 3, 7, 30):
        loss = rng.uniform(0.05, 2.0, (4, n)) * (rng.random((4, n)) < 0.7)
        loss[0], loss[1] = 0.0, 1.0
        size = np.ceil(rng.lognormal(3.0, 1.5, (4, n)))
        for error in (coordinate_error(), coordinate_error(3.0), error_of_kappa(40.0, 0.5)):
            label = f"{n} owners, {error.kind}, {error.radius:g}"
            found[label] = weights_in(rule, loss, size, error)
        for far in (1e-210, 1e-60, 1e60) if takes_variance(rule) and not RULES[text] else ():
            noise = np.where(loss > 0, far / np.maximum(loss, 1e-9), np.inf)
            found[f"{n} owners, {far:g}"] = rule.weights(loss, size, 2.0, variance=noise)
    return found


def releases(text: str) -> dict[str, Any]:
    """Releases from fixed random numbers, variances, messages and the pair that tells most."""
    noise = perturbations.create(text.split()[0], **PERTURBATIONS[text])
    rng = np.random.default_rng(11)
    found: dict[str, Any] = {"domain": noise.domain}
    for dimension in (1, 2, 5, 8):
        raw = rng.normal(0.0, 1.0, (6, dimension)) * np.array([[0.1, 0.5, 1, 2, 9, 0]]).T
        losses = np.array([0.05, 0.6, 2.0, 6.0, 11.0, 40.0])
        for clip in (1.0, 2.5):
            label = f"{dimension} coordinates, threshold {clip:g}"
            prepared = noise.prepare(raw, clip)
            found[f"prepared, {label}"] = prepared
            sent = noise.release(prepared, losses, np.random.default_rng(dimension), clip)
            found[f"released, {label}"] = sent
            every = np.array([[0.0, 0.01, 0.3, 1.0], [3.0, 8.0, 20.0, 600.0]])
            found[f"variance, {label}"] = noise.variance(every, dimension, clip)
            error = vector_error(noise, dimension, clip)
            found[f"error, {label}"] = [error.kind, error.radius, error.kappa]
            if hasattr(noise, "worst_pair"):
                pairs = [noise.worst_pair(loss, dimension, clip) for loss in (0.6, 6.0)]
                found[f"pair, {label}"] = [list(vars(pair).values()) for pair in pairs]
            if hasattr(noise, "noise_scale"):
                found[f"scale, {label}"] = noise.noise_scale(losses, clip)
        found[f"bytes, {dimension}"] = [
            message_bytes(noise, dimension, loss) for loss in (0.1, 3.0, 9.0)
        ]
    return found


class Unknown:
    """A perturbation that names no pair of gradients, so that an audit has to look for one."""

    def __init__(self, name: str) -> None:
        known = perturbations.create(name)
        self.name, self.domain = name, known.domain
        self.prepare, self.release = known.prepare, known.release
        self.variance = known.variance


def strangers() -> dict[str, Any]:
    """Audits of perturbations that name no pair."""
    found: dict[str, Any] = {}
    for name in ("laplace", "piecewise"):
        for dimension in (3,):
            claim = PrivacyClaim(1.5, dimension, 2.0, seed=3)
            event = audit_batches(Unknown(name), claim, 5000, 20)[0].event
            result = audit(Unknown(name), 1.5, dimension, 2.0, draws=300, seed=3)
            label = f"{name}, {dimension} coordinates"
            pairs = worst_pairs(Unknown(name), 1.5, dimension, 2.0)
            found[f"pairs of {label}"] = [list(vars(pair).values()) for pair in pairs]
            found[label] = [list(vars(event).values()), list(vars(result).values())]
    return found


def audits(text: str) -> dict[str, Any]:
    """Small audits: the events, and what they show."""
    noise = perturbations.create(text.split()[0], **PERTURBATIONS[text])
    result = audit(noise, 1.5, 3, 2.0, draws=600, confidence=0.9, seed=4, one_by_one=50)
    batches = audit_batches(noise, PrivacyClaim(4.0, 2, seed=1), 300, 20)
    parts = [[b.first, b.begin, b.count, b.one_by_one] for b in batches]
    return vars(result) | {
        "shown": result.shown,
        "passed": result.passed,
        "event": list(vars(batches[0].event).values()),
        "batches": parts,
    }


REFERENCES: dict[str, Reference] = (
    {f"auction {name}": lambda name=name: decisions(name) for name in AUCTIONS}
    | {f"rule {name}": lambda name=name: weights(name) for name in RULES}
    | {f"perturbation {n}": lambda n=n: releases(n) for n in PERTURBATIONS}
    | {f"audit of {n}": lambda n=n: audits(n) for n in PERTURBATIONS}
    | {"audits of strangers": strangers}
)
