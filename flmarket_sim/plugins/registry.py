"""Every kind of plug-in and the built-in plug-ins of each, by the names that scenarios use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from flmarket_sim.errors import InputError, did_you_mean
from flmarket_sim.plugins.plugin_kind import PluginKind

PluginClass = TypeVar("PluginClass", bound=type)
CONTRACTS: dict[
    str, tuple[str, str, tuple[str, ...]]
] = {  # kind: (name in messages, name of its list, needs)
    "auction": ("auction", "auctions", ("name", "guarantees", "decide")),
    "aggregation": ("aggregation rule", "aggregation", ("name", "weights")),
    "robust": ("robust rule", "robust", ("name", "combine")),
    "contribution": ("contribution", "contributions", ("name", "values")),
    "perturbation": (
        "perturbation",
        "perturbations",
        ("name", "domain", "prepare", "release", "variance"),
    ),
    "check": ("check", "checks", ("name", "scores", "p_values")),
    "dataset": ("data set", "datasets", ("name", "class_counts", "load")),
    "partition": ("partition", "partitions", ("name", "counts")),
    "delay": ("delay", "delays", ("name", "random", "seconds")),
    "behaviour": ("behaviour", "behaviours", ("name", "report")),
    "cheat": ("cheat", "cheats", ("name", "plan", "updates")),
    "family": ("valuation family", "families", ("name", "value", "loss_for_money")),
    "model": ("model", "models", ()),
    "optimizer": ("optimizer", "optimizers", ("name", "step", "state", "restore")),
    "schedule": ("schedule", "schedules", ("name", "multiplier")),
    "study": ("study", "studies", ("name", "tasks", "measure", "conclude")),
}
TORCH_OPTIMIZERS = (  # of torch.optim, named here so that a list of names does not import torch
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam",
    "RMSprop", "Rprop", "SGD",
)  # fmt: skip
UNFIT = {  # kind: name: why there is no such plug-in
    "optimizer": {
        "LBFGS": "it computes the gradient again and again within one step, "
        "and a round delivers one update",
        "SparseAdam": "it needs sparse gradients, and an update has all coordinates",
        "Muon": "it takes matrices only, and the parameters of a model are one vector here",
    }
}
FACTS = {"model": 2, "optimizer": 1}  # arguments before the options: features, classes; dimension
BUILT_IN = {  # kind: name: where in this package the class is
    "auction": {
        "all-in": "auctions.all_in:AllIn",
        "all-in-critical": "auctions.all_in_critical:AllInCritical",
        "proportional-share": "auctions.proportional_share:ProportionalShare",
        "clock": "auctions.clock:Clock",
        "fair-query": "auctions.fair_query:FairQuery",
        "posted-price": "auctions.posted_price:PostedPrice",
        "pay-as-bid": "auctions.pay_as_bid:PayAsBid",
        "agn": "auctions.procurement.agn:Agn",
        "greedy-ii": "auctions.procurement.greedy_ii:GreedyII",
        "random-sample": "auctions.procurement.random_sample:RandomSample",
        "gravin-3": "auctions.procurement.gravin_3:Gravin3",
        "gravin-2": "auctions.procurement.gravin_2:Gravin2",
        "vcg-k": "auctions.privacy_markets.vcg_k:VcgK",
        "csra": "auctions.privacy_markets.csra:Csra",
        "mfg-pricing": "auctions.privacy_markets.mfg_pricing:MfgPricing",
        "stackelberg": "auctions.privacy_markets.stackelberg:Stackelberg",
        "contract-menu": "auctions.privacy_markets.contract_menu:ContractMenu",
        "shapley-pay": "auctions.privacy_markets.shapley_pay:ShapleyPay",
        "fmore": "auctions.privacy_markets.fmore:FMore",
        "virtual-cost": "auctions.privacy_markets.virtual_cost:VirtualCost",
        "regretnet": "auctions.learned.regretnet:RegretNet",
        "m-regretnet": "auctions.learned.regretnet:MRegretNet",
        "dm-regretnet": "auctions.learned.regretnet:DMRegretNet",
        "seq-price": "auctions.learned.seq_price:SeqPrice",
        "record-price": "auctions.learned.record_price:RecordPrice",
        "mfg-regretnet": "auctions.learned.mfg_regretnet:MfgRegretNet",
    },
    "aggregation": {
        "opt-aggr": "aggregation.opt_aggr:OptAggr",
        "opt-aggr-paper": "aggregation.opt_aggr:OptAggrPaper",
        "opt-aggr-winners": "aggregation.opt_aggr:OptAggrWinners",
        "convl-aggr": "aggregation.simple_rules:ConvlAggr",
        "var-opt": "aggregation.simple_rules:VarOpt",
        "uniform": "aggregation.simple_rules:UniformWeights",
        "constrained": "aggregation.constrained:Constrained",
        "opt-aggr-scs": "aggregation.opt_aggr_scs:OptAggrScs",
    },
    "robust": {
        "weighted-sum": "aggregation.weighted_sum:WeightedSum",
        "coordinate-median": "aggregation.robust.coordinate_median:CoordinateMedian",
        "trimmed-mean": "aggregation.robust.trimmed_mean:TrimmedMean",
        "geometric-median": "aggregation.robust.geometric_median:GeometricMedian",
        "krum": "aggregation.robust.krum:Krum",
        "multi-krum": "aggregation.robust.krum:MultiKrum",
        "norm-bounding": "aggregation.robust.norm_bounding:NormBounding",
    },
    "contribution": {
        "shapley": "contribution.shapley:Shapley",
        "leave-one-out": "contribution.leave_one_out:LeaveOneOut",
    },
    "perturbation": {
        "laplace": "perturbation.laplace:Laplace",
        "priv-unit": "perturbation.priv_unit:PrivUnit",
        "proj-unit": "perturbation.proj_unit:ProjUnit",
        "duchi-l2": "perturbation.duchi_l2:DuchiL2",
        "duchi-linf": "perturbation.duchi_linf:DuchiLinf",
        "piecewise": "perturbation.piecewise:Piecewise",
        "gaussian": "perturbation.gaussian:Gaussian",
    },
    "check": {
        "variance": "checks.variance:Variance",
        "aggregate-cosine": "checks.aggregate_cosine:AggregateCosine",
        "peer-cosine": "checks.peer_cosine:PeerCosine",
        "consistency": "checks.consistency:Consistency",
        "csra": "checks.csra_detection:CsraDetection",
        "peer-prediction": "checks.peer_prediction:PeerPrediction",
        "likelihood-ratio": "checks.likelihood_ratio:LikelihoodRatio",
    },
    "dataset": {
        "digits": "learning.digits:Digits",
        "nsl-kdd": "learning.nsl_kdd:NslKdd",
        "bank": "learning.bank:Bank",
        "synthetic": "learning.synthetic:Synthetic",
        "breast-cancer": "learning.breast_cancer:BreastCancer",
        "letter": "learning.letter:LetterRecognition",
        "mnist-5k": "learning.mnist_5k:Mnist5k",
        "adult": "learning.adult:Adult",
        "census-income": "learning.census_income:CensusIncome",
        "csv": "learning.file_data:CsvData",
        "parquet": "learning.file_data:ParquetData",
        "arrays": "learning.arrays_data:ArraysData",
    },
    "partition": {
        "iid": "learning.partitions:Iid",
        "dirichlet": "learning.partitions:Dirichlet",
        "shards": "learning.partitions:Shards",
        "given": "learning.partitions:Given",
    },
    "delay": {
        "constant": "market.delays:ConstantDelay",
        "uniform": "market.delays:UniformDelay",
        "lognormal": "market.delays:LognormalDelay",
    },
    "behaviour": {
        "truthful": "strategy.behaviours.distortions:Truthful",
        "scale": "strategy.behaviours.distortions:Scale",
        "shade": "strategy.behaviours.distortions:Shade",
        "pretend": "strategy.behaviours.distortions:Pretend",
        "best-response": "strategy.behaviours.best_response:BestResponse",
        "exp3": "strategy.behaviours.exp3:Exp3",
        "bandit": "strategy.behaviours.bandit:Bandit",
        "coalition": "strategy.behaviours.coalition:Coalition",
        "false-names": "strategy.behaviours.false_names:FalseNames",
    },
    "cheat": {
        "more-noise": "strategy.cheats.noise:MoreNoise",
        "nothing-but-noise": "strategy.cheats.noise:NothingButNoise",
        "stale": "strategy.cheats.copies:Stale",
        "public-direction": "strategy.cheats.copies:PublicDirection",
        "fewer-records": "strategy.cheats.fewer_records:FewerRecords",
        "sign-flip": "strategy.cheats.poison:SignFlip",
        "label-flip": "strategy.cheats.poison:LabelFlip",
        "targeted-poison": "strategy.cheats.poison:TargetedPoison",
        "rational": "strategy.cheats.rational:Rational",
    },
    "family": {
        "linear": "owners.families:Linear",
        "quadratic": "owners.families:Quadratic",
        "sqrt": "owners.families:SquareRoot",
        "exponential": "owners.families:Exponential",
        "step": "owners.families:Step",
    },
    "model": {
        "logistic": "learning.logistic:Logistic",
        "sigmoid-logistic": "learning.sigmoid_logistic:SigmoidLogistic",
        "none": "learning.buyer_model:NoModel",
    },
    "optimizer": {
        "sgd": "learning.optimizers:Sgd",
        "momentum": "learning.optimizers:Momentum",
        "adam": "learning.optimizers:Adam",
        "average": "learning.optimizers:Average",
    }
    | {name: f"learning.torch_optimizers:{name}" for name in TORCH_OPTIMIZERS},
    "schedule": {
        "constant": "learning.schedules:Constant",
        "cosine": "learning.schedules:Cosine",
        "inverse-sqrt": "learning.schedules:InverseSqrt",
        "step": "learning.schedules:StepSchedule",
    },
    "study": {
        "misreport-gain": "studies.misreport_gain:MisreportGain",
        "published-regret": "paper.published_regret:PublishedRegret",
        "strategic-share": "studies.strategic_share:StrategicShare",
        "rest-point": "studies.rest_point:RestPoint",
        "learners": "studies.learners:Learners",
        "coalition": "studies.collusion:CoalitionStudy",
        "false-names": "studies.collusion:FalseNamesStudy",
        "arbitrage": "studies.splitting_buyer:Arbitrage",
        "pipelines": "studies.pipelines:Pipelines",
        "buyers-curve": "studies.buyers_curve:BuyersCurve",
        "regimes": "studies.regimes:Regimes",
        "second-best": "studies.near_the_floor:NearTheFloor",
        "bargains": "studies.bargains:Bargains",
        "cheating": "studies.cheating:Cheating",
        "detection": "studies.detection:Detection",
        "cheat-share": "studies.cheat_share:ShareOfCheats",
        "league": "league.league_study:League",
        "error-by-budget": "paper.error_by_budget:ErrorByBudget",
        "accuracy": "paper.accuracy:Accuracy",
        "levels": "paper.levels:Levels",
        "guarantees": "paper.guarantees:Guarantees",
    },
}
KINDS = {
    kind: PluginKind(
        label,
        {name: f"flmarket_sim.{target}" for name, target in BUILT_IN[kind].items()},
        f"flmarket_sim.{plural}",
        needs,
        FACTS.get(kind, 0),
        UNFIT.get(kind, {}),
    )
    for kind, (label, plural, needs) in CONTRACTS.items()
}
LISTS = {plural: KINDS[kind] for kind, (_, plural, _) in CONTRACTS.items()}
auctions = KINDS["auction"]
aggregation = KINDS["aggregation"]
robust_rules = KINDS["robust"]
contributions = KINDS["contribution"]
perturbations = KINDS["perturbation"]
checks = KINDS["check"]
datasets = KINDS["dataset"]
partitions = KINDS["partition"]
delays = KINDS["delay"]
behaviours = KINDS["behaviour"]
cheats = KINDS["cheat"]
families = KINDS["family"]
models = KINDS["model"]
optimizers = KINDS["optimizer"]
schedules = KINDS["schedule"]
studies = KINDS["study"]


def register(kind: str) -> Callable[[PluginClass], PluginClass]:
    """A decorator that makes a class known in this process under its `name`.

    >>> @register("auction")
    ... class Lottery: ...

    Kinds are auction, aggregation, robust, contribution, perturbation, check, dataset, partition,
    delay, behaviour, cheat, family, model, optimizer, schedule and study. A class without the
    attributes of its kind, and a name that is taken, are refused. Worker processes do not see the
    registration: for them name the class as `module:Class` or `path/to/file.py:Class`, or by an
    entry point.
    """
    if kind not in KINDS:
        hint = did_you_mean(str(kind), KINDS, ".")
        raise InputError(f"there is no kind of plug-in {kind!r}{hint} Kinds: {', '.join(KINDS)}")
    return KINDS[kind].register
