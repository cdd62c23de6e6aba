"""One registry for every kind of plug-in: built-in names, entry points of other packages, and `module:Class`."""

from __future__ import annotations

import difflib
import importlib
import inspect
from importlib.metadata import entry_points
from typing import Any

import pydantic

from flmarket_sim.errors import InputError, shortened, shown


class Registry:
    """Plug-ins of one kind by name.

    Built-ins are given as `name -> "module:Class"` and imported on first use. Packages add their own through the
    entry-point group; a name with a colon is taken as `module:Class` directly.
    """

    def __init__(
        self,
        kind: str,
        builtin: dict[str, str],
        group: str | None = None,
        needs: tuple[str, ...] = (),
    ) -> None:
        self.kind = kind
        self.needs = needs
        self._targets = dict(builtin)
        self._classes: dict[str, Any] = {}
        self._group = group
        self._entry_points_read = group is None

    def names(self) -> list[str]:
        self._read_entry_points()
        return sorted(self._targets.keys() | self._classes.keys())

    def register(self, cls: Any) -> Any:
        """Adds a class under its `name`; usable as a decorator. An existing name is refused."""
        name = getattr(cls, "name", None)
        if not isinstance(name, str) or not name:
            raise InputError(f"{cls!r} cannot be registered as {self.kind}: it has no `name`")
        known = self._classes.get(name)
        if name in self._targets or (known is not None and known is not cls):
            raise InputError(f"{self.kind} {name!r} is registered already")
        self._classes[name] = cls
        return cls

    def get(self, name: str) -> Any:
        """The class behind a name, imported if need be."""
        if name in self._classes:
            return self._classes[name]
        if ":" not in name and name not in self._targets:
            self._read_entry_points()
        target = self._targets.get(name, name if ":" in name else None)
        if target is None:
            raise InputError(self.unknown(name))
        cls = load(target, self.kind, self.needs)
        if name in self._targets:  # a module:Class stays nameless
            self._classes[name] = cls
        return cls

    def create(self, name: str, **options: Any) -> Any:
        """An instance, its options checked against the constructor's signature."""
        cls = self.get(name)
        model = options_model(cls)
        try:
            checked = model.model_validate(options)
        except pydantic.ValidationError as error:
            allowed = ", ".join(model.model_fields) or "none"
            lines = [
                f"{'.'.join(map(str, e['loc']))}: {e['msg']} (got {shown(e['input'])})"
                for e in error.errors()
            ]
            raise InputError(
                f"{self.kind} {name!r}: {'; '.join(lines)}; options: {allowed}"
            ) from None
        return self.construct(name, cls, chosen(checked))

    def construct(self, name: str, cls: Any, options: dict[str, Any]) -> Any:
        """The class called with options; whatever its constructor objects to is an error about the plug-in."""
        try:
            return cls(**options)
        except InputError:
            raise
        except Exception as error:  # foreign code may fail in any way
            raise InputError(
                f"{self.kind} {name!r} cannot be made: {type(error).__name__}: {shortened(str(error))}"
            ) from error

    def unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name[:100], self.names(), 1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        return f"unknown {self.kind} {shown(name)}{hint} Known: {', '.join(self.names())}, or 'module:Class'"

    def describe(self, name: str) -> str:
        """The first line of the plug-in's docstring."""
        return (inspect.getdoc(self.get(name)) or "").split("\n", 1)[0]

    def _read_entry_points(self) -> None:
        if self._entry_points_read or self._group is None:
            return
        self._entry_points_read = True
        for point in entry_points(group=self._group):
            self._targets.setdefault(point.name, point.value)


def load(target: str, kind: str, needs: tuple[str, ...] = ()) -> Any:
    """Imports `module:Class`; every way this can fail is an error that names the target.

    It must be a class with the attributes in `needs`: what the contract of its kind asks for.
    """
    module_name, _, attribute = target.partition(":")
    try:
        module = importlib.import_module(module_name)
        found = getattr(module, attribute, None)
    except (
        Exception,
        SystemExit,
    ) as error:  # a plug-in's module may fail in any way; the user must learn which one and why
        raise InputError(
            f"{kind} {shown(target)}: module {shown(module_name)} cannot be imported: {shown(error)}"
        ) from error
    if found is None:
        near = difflib.get_close_matches(attribute[:100], dir(module), 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(
            f"{kind} {shown(target)}: module {module_name!r} has no {shown(attribute)}{hint}"
        )
    missing = [need for need in needs if not hasattr(found, need)]
    nameless = "name" in needs and not isinstance(getattr(found, "name", None), str)
    if not isinstance(found, type) or missing or nameless:
        why = f"it has no {' and no '.join(missing)}" if missing else "its `name` is not text"
        why = why if isinstance(found, type) else "it is not a class"
        raise InputError(f"{target!r} is not a kind of {kind}: {why}")
    return found


def chosen(checked: pydantic.BaseModel) -> dict[str, Any]:
    """The options that were given, as their types say."""
    return {key: getattr(checked, key) for key in checked.model_fields_set}


def options_model(cls: Any, skip: int = 0) -> type[pydantic.BaseModel]:
    """A pydantic model of a constructor's keyword options (after `skip` positional ones), unknown ones refused."""
    try:
        return _options_model(cls, skip)
    except (
        Exception
    ) as error:  # a signature that cannot be read, an annotation that means nothing at run time
        raise InputError(
            f"the options of {cls.__name__} cannot be read from its constructor: {error}"
        ) from error


def _options_model(cls: Any, skip: int) -> type[pydantic.BaseModel]:
    fields: dict[str, Any] = {}
    parameters = (
        [] if cls.__init__ is object.__init__ else list(_signature(cls).parameters.values())
    )
    for parameter in parameters[skip:]:
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        unknown = parameter.annotation is parameter.empty or isinstance(parameter.annotation, str)
        annotation = Any if unknown else parameter.annotation
        fields[parameter.name] = (
            annotation,
            ... if parameter.default is parameter.empty else parameter.default,
        )
    config = pydantic.ConfigDict(
        extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False, protected_namespaces=()
    )
    return pydantic.create_model(f"{cls.__name__}Options", __config__=config, **fields)


def _signature(cls: Any) -> inspect.Signature:
    try:
        return inspect.signature(cls, eval_str=True)
    except NameError:  # annotations that exist for type checkers only
        return inspect.signature(cls)


auctions = Registry(
    "auction",
    {
        "all-in": "flmarket_sim.auctions.all_in:AllIn",
        "all-in-critical": "flmarket_sim.auctions.all_in_critical:AllInCritical",
        "proportional-share": "flmarket_sim.auctions.proportional_share:ProportionalShare",
        "fair-query": "flmarket_sim.auctions.fair_query:FairQuery",
        "posted-price": "flmarket_sim.auctions.posted_price:PostedPrice",
        "pay-as-bid": "flmarket_sim.auctions.pay_as_bid:PayAsBid",
        "regretnet": "flmarket_sim.auctions.learned.regretnet:RegretNet",
        "m-regretnet": "flmarket_sim.auctions.learned.regretnet:MRegretNet",
        "dm-regretnet": "flmarket_sim.auctions.learned.regretnet:DMRegretNet",
        "seq-price": "flmarket_sim.auctions.learned.seq_price:SeqPrice",
    },
    group="flmarket_sim.auctions",
    needs=("name", "guarantees", "decide"),
)

aggregation = Registry(
    "aggregation rule",
    {
        "opt-aggr": "flmarket_sim.aggregation.opt_aggr:OptAggr",
        "opt-aggr-paper": "flmarket_sim.aggregation.opt_aggr:OptAggrPaper",
        "opt-aggr-winners": "flmarket_sim.aggregation.opt_aggr:OptAggrWinners",
        "convl-aggr": "flmarket_sim.aggregation.simple_rules:ConvlAggr",
        "var-opt": "flmarket_sim.aggregation.simple_rules:VarOpt",
        "uniform": "flmarket_sim.aggregation.simple_rules:UniformWeights",
    },
    group="flmarket_sim.aggregation",
    needs=("name", "weights"),
)

datasets = Registry(
    "data set",
    {
        "digits": "flmarket_sim.learning.digits:Digits",
        "nsl-kdd": "flmarket_sim.learning.nsl_kdd:NslKdd",
        "bank": "flmarket_sim.learning.bank:Bank",
        "synthetic": "flmarket_sim.learning.synthetic:Synthetic",
    },
    group="flmarket_sim.datasets",
    needs=("name", "class_counts", "load"),
)

partitions = Registry(
    "partition",
    {
        "iid": "flmarket_sim.learning.partitions:Iid",
        "dirichlet": "flmarket_sim.learning.partitions:Dirichlet",
        "shards": "flmarket_sim.learning.partitions:Shards",
    },
    group="flmarket_sim.partitions",
    needs=("name", "counts"),
)

delays = Registry(
    "delay",
    {
        "constant": "flmarket_sim.market.delays:ConstantDelay",
        "uniform": "flmarket_sim.market.delays:UniformDelay",
        "lognormal": "flmarket_sim.market.delays:LognormalDelay",
    },
    group="flmarket_sim.delays",
    needs=("name", "random", "seconds"),
)

behaviours = Registry(
    "behaviour",
    {
        "truthful": "flmarket_sim.strategy.behaviours.distortions:Truthful",
        "scale": "flmarket_sim.strategy.behaviours.distortions:Scale",
        "shade": "flmarket_sim.strategy.behaviours.distortions:Shade",
        "pretend": "flmarket_sim.strategy.behaviours.distortions:Pretend",
        "best-response": "flmarket_sim.strategy.behaviours.best_response:BestResponse",
        "exp3": "flmarket_sim.strategy.behaviours.exp3:Exp3",
        "bandit": "flmarket_sim.strategy.behaviours.bandit:Bandit",
        "coalition": "flmarket_sim.strategy.behaviours.coalition:Coalition",
        "false-names": "flmarket_sim.strategy.behaviours.false_names:FalseNames",
    },
    group="flmarket_sim.behaviours",
    needs=("name", "report"),
)

models = Registry(
    "model",
    {
        "logistic": "flmarket_sim.learning.logistic:Logistic",
        "none": "flmarket_sim.learning.model:NoModel",
    },
)

studies = Registry(
    "study",
    {
        "misreport-gain": "flmarket_sim.studies.misreport_gain:MisreportGain",
        "published-regret": "flmarket_sim.paper.published_regret:PublishedRegret",
        "strategic-share": "flmarket_sim.studies.strategic_share:StrategicShare",
        "rest-point": "flmarket_sim.studies.rest_point:RestPoint",
        "learners": "flmarket_sim.studies.learners:Learners",
        "coalition": "flmarket_sim.studies.collusion:CoalitionStudy",
        "false-names": "flmarket_sim.studies.collusion:FalseNamesStudy",
        "arbitrage": "flmarket_sim.studies.splitting_buyer:Arbitrage",
        "error-by-budget": "flmarket_sim.paper.error_by_budget:ErrorByBudget",
        "accuracy": "flmarket_sim.paper.accuracy:Accuracy",
        "levels": "flmarket_sim.paper.levels:Levels",
        "guarantees": "flmarket_sim.paper.guarantees:Guarantees",
    },
    group="flmarket_sim.studies",
    needs=("name", "tasks", "measure", "conclude"),
)
