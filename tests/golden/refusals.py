"""What the four rooms refuse, one example of each refusal; the texts are in refusals.json."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

import flmarket_sim as fm
from flmarket_sim.aggregation.convex_rule import ConvexRule
from flmarket_sim.aggregation.error_bound import error_bound
from flmarket_sim.aggregation.market_error import MarketError
from flmarket_sim.aggregation.noise_curve import NoiseCurve
from flmarket_sim.aggregation.rule import check_inputs, check_variance, check_weights
from flmarket_sim.auctions import first_best
from flmarket_sim.auctions.auction import Outcome, check_budget, check_outcome
from flmarket_sim.auctions.auction_name import AuctionName
from flmarket_sim.auctions.play import Player
from flmarket_sim.auctions.second_best import second_best
from flmarket_sim.owners.rate_prior import UniformRates
from flmarket_sim.perturbation.perturbation import checked_losses
from flmarket_sim.plugins.registry import perturbations
from flmarket_sim.privacy.accounting import composed_loss
from flmarket_sim.privacy.hardened import HardenedNoise
from flmarket_sim.privacy.noise import create_noise
from flmarket_sim.privacy.privacy_audit import PrivacyClaim, audit_batches
from flmarket_sim.privacy.release import Release
from flmarket_sim.randomness import Streams
from tests.golden.mechanisms import AUCTIONS, PERTURBATIONS, RULES
from tests.support.profiles import random_profiles

TRUTH = random_profiles(np.random.default_rng(0), 2, 2)
BIDS = TRUTH.bids(2)
MONEY = np.array([3.0, 100.0])
NOTHING = np.zeros((2, 2))
ONES = np.ones((2, 2))
LOSS = np.array([[0.0, 1.0], [2.0, 0.5]])


def outcome(**changed: Any) -> Callable[[], object]:
    made = Outcome(**({"privacy_loss": NOTHING, "payment": NOTHING} | changed))
    return lambda: check_outcome("an auction", made, BIDS, MONEY)


def given(text: str) -> Callable[[], object]:
    return lambda: AuctionName.parse(text).options


def value(function: Any) -> Callable[[], object]:
    """An auction that ranks by a function from elsewhere."""

    def decide() -> object:
        auction: Any = fm.auctions.create("all-in")
        auction.value, auction._function = "mine:worth", function
        return auction.decide(BIDS, MONEY, np.random.default_rng(0))

    return decide


class Rule(ConvexRule):
    """A rule of cvxpy whose problem is wrong in a way."""

    name = "mine"

    def __init__(self, way: str) -> None:
        self.way = way
        if way == "a step":
            self.solver_options = {"max_iter": 1}
        if way == "nobody":
            self.solver = "NOBODY"

    def problem(self, owners: Any) -> Any:
        if self.way == "shape":
            return owners.error_bound
        if self.way == "infeasible":
            return owners.error_bound, [owners.weight >= 2.0]
        if self.way in ("a step", "nobody"):
            return owners.error_bound, [owners.weight <= 0.6]
        if self.way == "concave":
            return -owners.error_bound, []
        own = owners.parameter("level", nonneg=True)
        if self.way == "product":
            return owners.error_bound * own * own, []
        return owners.error_bound, [owners.weight <= own]

    def parameter_values(self, market: Any) -> Any:
        known = {"unknown": {"levels": 1.0}, "sign": {"level": -1.0}}
        return known.get(self.way, {"level": 1.0} if self.way == "product" else {})


def fails(*_: object) -> Any:
    raise ZeroDivisionError("nothing is shared")


def player(**methods: Any) -> Player:
    """A player of an auction from elsewhere."""
    mine: Any = SimpleNamespace(name="mine", guarantees={}, decide=fails, **methods)
    return Player(mine, random=True)


def leaving(sent: Any, prepared: Any = None) -> Callable[[], object]:
    def answer(given: Any, otherwise: Any) -> Any:
        return fails() if given is fails else otherwise if given is None else given

    noise: Any = SimpleNamespace(
        name="mine",
        domain="l2",
        prepare=lambda rows, clip: answer(prepared, rows),
        release=lambda rows, losses, rng, clip: answer(sent, rows),
    )

    def leave() -> object:
        out = create_noise("simulation", noise, 1.0, Streams(0))
        return Release(np.ones((1, 2)), [1.0], noise, 1.0, out).leave(0, 0, 0, 0)

    return leave


def curve(variance: Callable[[Any], Any]) -> Callable[[], object]:
    return lambda: NoiseCurve.of(MarketError("vector", variance), 2.0, 1.0, 5)


def auction(name: str, **options: Any) -> Callable[[], object]:
    return lambda: fm.auctions.create(name, **options)


def rule(**options: Any) -> Callable[[], object]:
    return lambda: fm.aggregation.create("constrained", **options)


def weights_of(way: str) -> Callable[[], object]:
    return lambda: Rule(way).weights(LOSS + 0.1, ONES)


BUILT_IN_AUCTIONS = sorted({name.partition("[")[0] for name in AUCTIONS})
NOISES = sorted({name.split()[0] for name in PERTURBATIONS})
RULE_NAMES = sorted({name.split()[0] for name in RULES})
LAPLACE = perturbations.create("laplace")
REFUSALS: dict[str, Callable[[], object]] = {
    "an outcome of another shape": outcome(privacy_loss=np.zeros((1, 2))),
    "payments that are whole numbers": outcome(payment=np.zeros((2, 2), int)),
    "a negative payment": outcome(payment=-ONES),
    "a privacy loss that is not a number": outcome(privacy_loss=NOTHING + np.nan),
    "more privacy than there is": outcome(privacy_loss=ONES * 9),
    "more money than there is": outcome(payment=ONES * 60),
    "records of half a person": outcome(data_size=ONES / 2),
    "a budget of another shape": lambda: check_budget(BIDS, [1.0]),
    "a budget in words": lambda: check_budget(BIDS, ["much", "more"]),
    "a negative budget": lambda: check_budget(BIDS, [1.0, -1.0]),
    "an endless budget": lambda: check_budget(BIDS, [np.inf, 1.0]),
    "options without a value": given("all-in[precision]"),
    "a name in brackets": given("all-in[name=clock]"),
    "an option twice": given("clock[cap=0.5, cap=0.6]"),
    "weights twice": given("regretnet@a[weights=b]"),
    "a value that is nothing": given("clock[cap=0.5 0.6]"),
    "a first best of another shape": lambda: first_best(TRUTH, [1.0]),
    "a first best without a number": lambda: first_best(TRUTH, [1.0, np.nan]),
    "a floor without money": lambda: second_best(TRUTH, [0.0, 1.0], UniformRates(0.5, 1.5)),
    "a value that nobody knows": auction("all-in", value="presicion"),
    "a value that is no function": auction("all-in", value="math:pi"),
    "a value that fails": value(lambda budget, size: 1 / 0),
    "a value of another shape": value(lambda budget, size: budget[0]),
    "a value of nothing": value(lambda budget, size: budget * 0),
    "menus upside down": auction("virtual-cost", smallest=2.0, largest=1.0),
    "types that fall": auction("contract-menu", types=[1.0, 0.5]),
    "no type": auction("contract-menu", types=[]),
    "types of nothing": auction("contract-menu", types=[0.0, 0.5]),
    "endless types": auction("contract-menu", types=[1.0, 1e101]),
    "a cap of nothing": rule(cap=0.0),
    "a cap above all": rule(cap=1.1),
    "unfair": rule(fairness=-0.1),
    "other groups": rule(groups="age"),
    "no owner": rule(sparsity=0),
    "no bias": rule(bias=0.0),
    "too much bias": rule(bias=2.1),
    "few with little": rule(sparsity=2, cap=0.3),
    "losses of one dimension": lambda: check_inputs([1.0], [1.0], 1.0),
    "no owners": lambda: check_inputs(np.ones((1, 0)), np.ones((1, 0)), 1.0),
    "a negative loss": lambda: check_inputs(-ONES, ONES, 1.0),
    "no records": lambda: check_inputs(ONES, NOTHING, 1.0),
    "losses in words": lambda: check_inputs([["a"]], [[1.0]], 1.0),
    "a threshold of nothing": lambda: check_inputs(ONES, ONES, 0.0),
    "a threshold in words": lambda: check_inputs(ONES, ONES, "1"),  # type: ignore[arg-type]
    "a variance of another shape": lambda: check_variance([[1.0]], LOSS, 1.0),
    "no variance": lambda: check_variance(NOTHING, LOSS, 1.0),
    "weights of another shape": lambda: check_weights("a rule", np.ones((1, 2)), LOSS),
    "negative weights": lambda: check_weights("a rule", ONES * [2.0, -1.0], LOSS),
    "weights of half": lambda: check_weights("a rule", ONES / 4, LOSS),
    "weights of losers": lambda: check_weights("a rule", ONES / 2, LOSS),
    "a bound of other weights": lambda: error_bound(np.ones((1, 2)), LOSS, ONES),
    "a bound of endless weights": lambda: error_bound(ONES * np.inf, LOSS, ONES),
    "a variance that is endless": curve(lambda loss: loss * np.inf),
    "a variance that rises": curve(lambda loss: loss),
    "a problem without constraints": weights_of("shape"),
    "a problem without weights": weights_of("infeasible"),
    "a problem that is concave": weights_of("concave"),
    "a problem of products": weights_of("product"),
    "parameters nobody knows": weights_of("unknown"),
    "parameters of another sign": weights_of("sign"),
    "a solver with one step": weights_of("a step"),
    "a solver that nobody has": weights_of("nobody"),
    "no problem": lambda: ConvexRule.problem(Rule("shape"), None),  # type: ignore[arg-type]
    "a projection on one": lambda: perturbations.create("proj-unit", size=1),
    "a delta of a half": lambda: perturbations.create("gaussian", delta=0.5),
    "a delta of nothing": lambda: perturbations.create("gaussian", delta=0.0),
    "no coordinates": lambda: perturbations.create("priv-unit", length="unit").variance(1.0, 0),
    "too many coordinates": lambda: perturbations.create("priv-unit").variance(1.0, 10**6 + 1),
    "losses for others": lambda: checked_losses([1.0, 2.0], 1, "laplace"),
    "a release for nothing": lambda: checked_losses([1.0, 0.0], 2, "laplace"),
    "an endless release": lambda: checked_losses([np.inf], 1, "laplace"),
    "a negative delta": lambda: composed_loss([1.0], -0.1),
    "a delta of one": lambda: composed_loss([1.0], 1.0),
    "a release of another shape": leaving(np.ones((1, 3))),
    "a release without numbers": leaving(np.full((1, 2), np.inf)),
    "a release that fails": leaving(fails),
    "a preparation that fails": leaving(None, fails),
    "an auction that fails": lambda: player().decide(BIDS, MONEY),
    "chances that fail": lambda: player(expected=fails).chances(BIDS, MONEY),
    "an auction of another name": lambda: Player(
        player().auction, random=False, name="theirs"
    ).decide(BIDS, MONEY),
    "a preparation of another shape": leaving(np.ones((1, 2)), np.ones((1, 3))),
    "hardened noise for another": lambda: create_noise(
        "hardened", perturbations.create("piecewise"), 1.0, Streams(0)
    ),
    "a hardened gradient without numbers": lambda: HardenedNoise("laplace", 1.0).release(
        np.array([np.nan]), 1.0, 7, 3, 0
    ),
    "an audit of nothing": lambda: audit_batches(LAPLACE, PrivacyClaim(0.0, 2), 100),
    "an endless audit": lambda: audit_batches(LAPLACE, PrivacyClaim(np.inf, 2), 100),
    "an audit without draws": lambda: audit_batches(LAPLACE, PrivacyClaim(1.0, 2), 0),
    "an audit without end": lambda: audit_batches(LAPLACE, PrivacyClaim(1.0, 2), 10**10 + 1),
}


def badly_released(name: str) -> Callable[[], object]:
    noise = perturbations.create(name)
    return lambda: noise.release(np.ones((2, 3)) / 9, [1.0, 0.0], np.random.default_rng(0))


def badly_paid(name: str) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    return lambda: fm.auctions.create(name).decide(BIDS, np.array([1.0, np.nan]), rng)


def badly_weighted(name: str) -> Callable[[], object]:
    return lambda: fm.aggregation.create(name).weights(LOSS, ONES, 0.0)


REFUSALS |= {f"a release of {n} for nothing": badly_released(n) for n in NOISES}
REFUSALS |= {f"money of {n} that is no number": badly_paid(n) for n in BUILT_IN_AUCTIONS}
REFUSALS |= {f"a threshold of {n} of nothing": badly_weighted(n) for n in RULE_NAMES}
