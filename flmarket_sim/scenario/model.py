"""The whole experiment as frozen data: what a scenario file says, with a hash.

The types of single values are declared here; rules about several values are in rules.py. A
Scenario is checked by both, from a file as well as in Python.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from flmarket_sim.scenario.cheating_tables import CheatShare, CheckTable
from flmarket_sim.scenario.contribution_table import Contribution
from flmarket_sim.scenario.later_keys import without_later_keys
from flmarket_sim.scenario.part import Part, Plugin, Probability
from flmarket_sim.scenario.sweep_table import Sweep

SMALLEST, LARGEST = 1e-12, 1e12  # rates, privacy budgets, money: their products stay finite


def _pair(value: Any) -> Any:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return (value, value)
    return tuple(value) if isinstance(value, list) else value


def _ordered(pair: tuple[float, float]) -> tuple[float, float]:
    if pair[0] > pair[1]:
        raise ValueError(f"the range must rise, but {pair[0]} > {pair[1]}")
    return pair


def _positive(pair: tuple[float, float]) -> tuple[float, float]:
    if pair[0] <= 0:
        raise ValueError("both ends must be greater than 0")
    if pair[0] < SMALLEST or pair[1] > LARGEST:
        raise ValueError(f"both ends must lie between {SMALLEST:g} and {LARGEST:g}")
    return pair


_RANGE_SCHEMA = {
    "anyOf": [
        {"type": "number"},
        {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
    ]
}
PositiveRange = Annotated[
    tuple[float, float],
    BeforeValidator(_pair),
    AfterValidator(_ordered),
    AfterValidator(_positive),
    WithJsonSchema(_RANGE_SCHEMA),
]
Family = Annotated[str, Field(min_length=1)]  # a name, 'module:Class' or 'file.py:Class'
Families = Annotated[
    tuple[Family, ...],
    BeforeValidator(lambda v: tuple(v) if isinstance(v, list) else v),
    Field(min_length=1, json_schema_extra={"uniqueItems": True}),
]

LARGEST_EXPONENTIAL = 500.0  # exp(710) is the end of floating-point numbers
TOO_EXPONENTIAL = (
    f"exponential valuations of privacy budgets above {LARGEST_EXPONENTIAL:g} are beyond all "
    "money; leave 'exponential' out of families, or lower privacy_budget"
)
HARDENED = "hardened"
TYPES_ONLY = {"rules": False}  # the context of a validation whose caller checks the rules
Seconds = Annotated[float, Field(gt=0)]


class Model(Plugin):
    """The buyer's model.

    It is 'logistic', 'sigmoid-logistic' (the authors' classifier), 'none' (a market without
    learning), or a torch.nn.Module as 'module:Class'.
    """

    name: str = Field("logistic", min_length=1)
    learning_rate: float = Field(0.01, gt=0, description="step size of the buyer's optimizer")
    optimizer: Plugin = Field(
        Plugin(name="sgd"),
        description="what the buyer does with a delivered update: sgd, momentum, adam, average, "
        "or a class of torch.optim by its name",
    )
    schedule: Plugin = Field(
        Plugin(name="constant"),
        description="how the step size changes over the rounds: constant, cosine, inverse-sqrt "
        "or step",
    )
    averaging: float = Field(
        0.0,
        ge=0,
        le=1,
        description="the model that is evaluated is a mean of the models so far, later ones with "
        "more weight, as old on average as a plain mean of this latest share of the rounds; "
        "1: the plain mean of all, 0: the latest model alone",
    )
    shrink: bool = Field(
        False,
        description="whether a delivered update is multiplied by C^2 / (C^2 + its vector bound): "
        "noisy rounds then count less than good ones",
    )
    evaluate_every: int = Field(
        1, ge=1, description="rounds between evaluations; the last round is always one"
    )

    def evaluated(self, round_number: int, rounds: int) -> bool:
        """Whether the model is evaluated at the end of this round of so many, counted from 0."""
        return (round_number + 1) % self.evaluate_every == 0 or round_number == rounds - 1


class Aggregation(Plugin):
    """An aggregation rule, and the error that it is to keep small."""

    error: Literal["vector", "coordinate"] = Field(
        "vector",
        description="what the error bound is of: the squared error of the whole gradient, or "
        "(the paper's reading) one coordinate's variance beside the whole gradient's bias",
    )


class Learning(Part):
    """What owners compute on their records and send."""

    update: Literal["gradient", "local"] = Field(
        "gradient",
        description="'gradient' of the buyer's model, or 'local': the change of the model after "
        "several steps of plain SGD on the owner's own records (FedAvg)",
    )
    steps: int = Field(10, ge=1, le=10_000, description="local steps")
    learning_rate: float = Field(0.1, gt=0, le=1e6, description="step size of a local step")
    batch: int | None = Field(
        None,
        ge=1,
        description="records of a local step, drawn anew for each; none, or more than the owner "
        "sells: all of them",
    )


class BehaviourShare(Plugin):
    """A share of the owners, how they report from some round on, and options of that behaviour."""

    share: Probability = Field(
        description="of all owners; those whom no behaviour takes tell the truth"
    )
    from_round: int = Field(0, ge=0, description="before this round of a buyer they tell the truth")


class Owners(Part):
    """The population: who the owners are and how reliable they are."""

    count: int = Field(100, ge=1, le=10**8)
    partition: Plugin = Field(Plugin(name="iid"), description="how records are dealt out")
    families: Families = Field(
        ("linear", "quadratic", "sqrt", "exponential"),
        description="valuation families by name, 'module:Class' or 'path/to/file.py:Class', drawn "
        "uniformly",
    )
    rate: PositiveRange = Field((0.5, 1.5), description="multiplies the valuation, drawn uniformly")
    privacy_budget: PositiveRange = Field(
        (0.5, 2.0), description="largest privacy loss a round, drawn uniformly"
    )
    lifetime_budget: float | None = Field(
        None, gt=0, description="largest privacy loss over all rounds"
    )
    accept: Literal["rational", "always"] = Field(
        "rational", description="'rational' owners decline what pays less than their true valuation"
    )
    availability: Probability = Field(1.0, description="chance that an asked owner answers")
    dropout: Probability = Field(0.0, description="chance that a winner never sends her gradient")
    records_per_second: PositiveRange | None = Field(
        None,
        description="compute speed, drawn uniformly; every local step counts its records; "
        "none: gradients take no time",
    )
    behaviours: Annotated[
        tuple[BehaviourShare, ...],
        BeforeValidator(lambda v: tuple(v) if isinstance(v, list) else v),
        Field(max_length=100),
    ] = Field((), description="who reports otherwise than truthfully; nobody by default")
    cheats: Annotated[
        tuple[CheatShare, ...],
        BeforeValidator(lambda v: tuple(v) if isinstance(v, list) else v),
        Field(max_length=100),
    ] = Field((), description="who delivers something else than she sold; nobody by default")


class Market(Part):
    """The rules of a round. Times are simulated seconds."""

    bidders: int = Field(10, ge=1, description="owners asked a round")
    levels: int = Field(
        8, ge=1, le=1000, description="M: shares of the privacy budget that a bid names a value for"
    )
    delay: Plugin = Field(
        Plugin(name="constant"), description="time a message takes: constant, uniform or lognormal"
    )
    bid_deadline: Seconds = 60.0
    decision_deadline: Seconds = 60.0
    gradient_deadline: Seconds = 600.0
    counterfactual: bool = Field(
        False, description="log what every liar would have earned by the truth; costs auctions"
    )


class Privacy(Part):
    """Local differential privacy of the gradients."""

    clip: float = Field(
        1.0,
        ge=1e-6,
        le=1e6,
        description="the largest norm of a gradient that is sold, in the norm of the perturbation "
        "(laplace: L1, priv-unit: L2)",
    )
    noise: Literal["simulation", "hardened"] = Field(
        "simulation",
        description="'simulation' can be repeated and is not fit for a release; "
        "'hardened' (OpenDP, for laplace and duchi-l2) is, and takes no seed",
    )


class LogTable(Part):
    """What a run keeps beside its events, so that every number of it can be computed again."""

    models: Literal["never", "evaluated", "every"] = Field(
        "never",
        description="which parameters of the buyers' models are kept, with the delivered gradient: "
        "'evaluated' keeps the first model and those before and after every evaluated round",
    )
    records: bool = Field(
        True, description="owners.parquet names each owner's records, in a market with learning"
    )
    ceiling: Literal["auto", "always", "never"] = Field(
        "auto",
        description="whether a run also trains every buyer's model without noise on all owners' "
        "records, to compare accuracies with it; 'auto' does so where it takes seconds",
    )


class Budget(Part):
    """The buyer's money a round: an amount, or a factor of the bidders' true total valuation."""

    factor: PositiveRange | None = Field(
        None, description="times the sum of the asked owners' true valuations"
    )
    amount: PositiveRange | None = Field(None, description="money, drawn uniformly")


class BuyerTable(Part):
    """One of several buyers; what is left out is taken from the scenario's own tables."""

    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$")
    budget: Budget | None = None
    auction: Plugin | None = None
    aggregation: Aggregation | None = None
    robust: Plugin | None = None
    perturbation: Plugin | None = None
    model: Model | None = None


class ResolvedBuyer(Part):
    """A buyer with every part filled in."""

    name: str
    budget: Budget
    auction: Plugin
    aggregation: Aggregation
    robust: Plugin
    perturbation: Plugin
    model: Model


class Scenario(Part):
    """A market for private gradients: who takes part, by which rules, for how long."""

    name: str = Field("scenario", min_length=1, max_length=100, pattern=r"^[^/\\\x00-\x1f]*$")
    description: str = ""
    seed: int = Field(0, ge=0, le=2**63 - 1)
    rounds: int = Field(30, ge=1, le=10**7)
    data: Plugin = Plugin(name="digits")
    owners: Owners = Owners()
    market: Market = Market()
    privacy: Privacy = Privacy()
    log: LogTable = LogTable()
    budget: Budget = Budget(factor=(0.1, 2.0))
    auction: Plugin = Plugin(name="all-in-critical")
    aggregation: Aggregation = Aggregation(name="opt-aggr")
    robust: Plugin = Field(
        Plugin(name="weighted-sum"),
        description="how messages and their weights become one gradient: the weighted sum, or a "
        "rule that limits what a few messages can do",
    )
    contribution: Contribution | None = Field(
        None, description="what sellers contributed to each round; left out: nobody works it out"
    )
    perturbation: Plugin = Field(
        Plugin(name="priv-unit"),
        description="how a gradient is made private before it leaves its owner",
    )
    learning: Learning = Learning()
    check: CheckTable | None = Field(
        None, description="how the broker looks for cheats, and what follows; she does not look"
    )
    model: Model = Model()
    study: Plugin | None = Field(
        None,
        description="what `flmarket study` asks of this market, and the options of the question",
    )
    buyers: Annotated[
        tuple[BuyerTable, ...],
        BeforeValidator(lambda v: tuple(v) if isinstance(v, list) else v),
        Field(max_length=100),
    ] = ()

    @model_validator(mode="wrap")
    @classmethod
    def checked(
        cls, data: Any, build: ModelWrapValidatorHandler[Scenario], info: ValidationInfo
    ) -> Scenario:
        """Refuses what a scenario file would be refused for. Raises ScenarioError."""
        if info.context is TYPES_ONLY or isinstance(data, Scenario):
            return build(data)
        from flmarket_sim.scenario.check import checked_tables

        return build(checked_tables(data))

    @property
    def repeatable(self) -> bool:
        """Whether the same scenario gives the same run: not with hardened noise."""
        return self.privacy.noise != HARDENED

    def resolved_buyers(self) -> tuple[ResolvedBuyer, ...]:
        """The buyers of the market; without a list there is one, called 'buyer'."""
        return tuple(
            ResolvedBuyer(
                name=buyer.name,
                budget=buyer.budget or self.budget,
                auction=buyer.auction or self.auction,
                aggregation=buyer.aggregation or self.aggregation,
                robust=buyer.robust or self.robust,
                perturbation=buyer.perturbation or self.perturbation,
                model=buyer.model or self.model,
            )
            for buyer in self.buyers or (BuyerTable(name="buyer"),)
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data with the defaults: what run.json contains."""
        plain: dict[str, Any] = self.model_dump(mode="json")
        return plain

    def digest(self) -> str:
        """SHA-256 of the scenario with its defaults.

        A key that was added later counts only if it says something else than every scenario meant
        before, so that the hashes of older scenarios stay.
        """
        plain = without_later_keys(self.as_dict())
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()


def without_nulls(value: Any) -> Any:
    """The tables of `as_dict` without their None values, as a TOML file would have them."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


class ScenarioFile(Scenario):
    """The content of a scenario file: a scenario, and the sweep over it."""

    sweep: Sweep | None = Field(None, description="what `flmarket sweep` varies")
