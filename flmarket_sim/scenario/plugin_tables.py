"""The tables of a scenario that name a plug-in: the names are completed, the options checked."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pydantic

from flmarket_sim.errors import InputError, did_you_mean, shown
from flmarket_sim.plugins import registry
from flmarket_sim.plugins.options import chosen, options_model
from flmarket_sim.plugins.plugin_kind import PluginKind
from flmarket_sim.scenario.cheating_tables import CheatShare, CheckTable
from flmarket_sim.scenario.contribution_table import Contribution
from flmarket_sim.scenario.model import Aggregation, BehaviourShare, Market, Model, Owners, Scenario
from flmarket_sim.scenario.problems import Problem
from flmarket_sim.scenario.toml_lines import PathKeys

_OWN_KEYS = {  # keys beside the options of a plug-in
    "model": Model.model_fields.keys(),
    "aggregation rule": Aggregation.model_fields.keys(),
    "contribution": Contribution.model_fields.keys(),
    "behaviour": BehaviourShare.model_fields.keys(),
    "cheat": CheatShare.model_fields.keys(),
    "check": CheckTable.model_fields.keys(),
}


def completed(data: dict[str, Any]) -> dict[str, Any]:
    """A copy in which every table of a plug-in has a name.

    A text in the place of a table is a name without options. A table without a name adds its
    options to those of the scenario (for a buyer's table) or to the default plug-in. The same holds
    for the tables within a model.
    """
    data = copy.deepcopy(data)
    default = {key: Scenario.model_fields[key].default.name for key in _IN_SCENARIO}
    for place, key, name in (
        *((data, key, default[key]) for key in _IN_SCENARIO),
        (data, "study", None),
        (data, "check", None),
        (data, "contribution", Contribution().name),
        (data.get("owners"), "partition", Owners().partition.name),
        (data.get("market"), "delay", Market().delay.name),
    ):
        _name(place, key, name)
    for key, name in _IN_MODEL.items():
        _name(data.get("model"), key, name)
    buyers = data.get("buyers")
    for buyer in buyers if isinstance(buyers, list) else ():
        for key in _OF_BUYERS:
            _name(buyer, key, None)
            own = buyer.get(key) if isinstance(buyer, dict) else None
            if isinstance(own, dict) and "name" not in own:
                common = data.get(key)
                common = common if isinstance(common, dict) else {"name": default[key]}
                buyer[key] = common | own | (_nested(common, own) if key == "model" else {})
        for key, name in _IN_MODEL.items():
            _name(buyer.get("model") if isinstance(buyer, dict) else None, key, name)
        _same_error(data.get("aggregation"), buyer)
    return data


def _same_error(common: Any, buyer: Any) -> None:
    """A buyer's rule bounds the error that the scenario's does, unless she says otherwise."""
    own = buyer.get("aggregation") if isinstance(buyer, dict) else None
    if isinstance(own, dict) and isinstance(common, dict) and "error" in common:
        own.setdefault("error", common["error"])


_OF_BUYERS = ("auction", "aggregation", "robust", "perturbation", "model")
_IN_SCENARIO = ("data", *_OF_BUYERS)
_IN_MODEL = {"optimizer": Model().optimizer.name, "schedule": Model().schedule.name}


def _nested(common: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """The tables within a buyer's model that have no name, with the options of the scenario's."""
    tables = {
        key: (common.get(key), own[key]) for key in _IN_MODEL if isinstance(own.get(key), dict)
    }
    return {
        key: theirs | hers
        for key, (theirs, hers) in tables.items()
        if isinstance(theirs, dict) and "name" not in hers
    }


def _name(place: Any, key: str, default: str | None) -> None:
    table = place.get(key) if isinstance(place, dict) else None
    if isinstance(table, str):
        place[key] = {"name": table}
    elif isinstance(table, dict) and default is not None and key != "model":
        table.setdefault("name", default)


def plugin_problems(data: dict[str, Any]) -> Iterator[Problem]:
    """Unknown plug-ins and wrong options, wherever a table names a plug-in."""
    yield from _check_plugin(("data",), data.get("data"), registry.datasets)
    yield from _check_plugin(("study",), data.get("study"), registry.studies)
    yield from _check_plugin(("check",), data.get("check"), registry.checks)
    contribution = data.get("contribution")
    yield from _check_plugin(("contribution",), contribution, registry.contributions)
    owners, market = data.get("owners"), data.get("market")
    if isinstance(owners, dict):
        partition = owners.get("partition")
        yield from _check_plugin(("owners", "partition"), partition, registry.partitions)
        families = owners.get("families")
        yield from _family_problems(families if isinstance(families, list | tuple) else ())
        for key, known in (("behaviours", registry.behaviours), ("cheats", registry.cheats)):
            shares = owners.get(key)
            for i, share in enumerate(shares if isinstance(shares, list) else ()):
                yield from _check_plugin(("owners", key, i), share, known)
    if isinstance(market, dict):
        yield from _check_plugin(("market", "delay"), market.get("delay"), registry.delays)
    buyers = data.get("buyers")
    tables: list[tuple[PathKeys, Any]] = [((), data)]
    if isinstance(buyers, list):
        tables += [(("buyers", i), buyer) for i, buyer in enumerate(buyers)]
    for path, table in tables:
        if isinstance(table, dict):
            for key, known in (
                ("auction", registry.auctions),
                ("aggregation", registry.aggregation),
                ("robust", registry.robust_rules),
                ("perturbation", registry.perturbations),
                ("model", registry.models),
            ):
                yield from _check_plugin((*path, key), table.get(key), known)
            model = table.get("model")
            for key, known in (
                ("optimizer", registry.optimizers),
                ("schedule", registry.schedules),
            ):
                nested = model.get(key) if isinstance(model, dict) else None
                yield from _check_plugin((*path, "model", key), nested, known)


def _family_problems(names: Sequence[Any]) -> Iterator[Problem]:
    """Families have no options, so that their names stand alone."""
    for i, name in enumerate(names):
        if isinstance(name, str) and name:
            try:
                registry.families.create(name)
            except InputError as error:
                yield Problem(("owners", "families", i), str(error))


def _check_plugin(path: PathKeys, table: Any, known: PluginKind) -> Iterator[Problem]:
    if not isinstance(table, dict) or not isinstance(table.get("name", ""), str):
        return
    name = table.get("name")
    if name is None:
        if known is not registry.models:
            return
        name = Model().name
    try:
        cls = known.get(name)
        allowed_options = options_model(cls, known.facts)
    except InputError as error:
        yield Problem((*path, "name"), str(error))
        return
    own = set(_OWN_KEYS.get(known.kind, {"name"}))
    options = {key: value for key, value in table.items() if key not in own}
    try:
        checked = allowed_options.model_validate(options, strict=True)
    except pydantic.ValidationError as error:
        allowed = sorted((set(allowed_options.model_fields) | own) - {"name"})
        yield from (_option_problem(path, name, allowed, e) for e in error.errors())
        return
    if known is not registry.models:  # a model needs the shape of the data
        try:
            known.construct(name, partial(cls, *[1] * known.facts), chosen(checked))
        except InputError as error:
            yield Problem(path, str(error))


def _option_problem(path: PathKeys, name: str, allowed: list[str], error: Any) -> Problem:
    where = (*path, *error["loc"])
    if error["type"] == "extra_forbidden":
        listed = ", ".join(allowed) or "none"
        hint = did_you_mean(str(error["loc"][-1]), allowed, ".")
        return Problem(where, f"{name!r} has no such option{hint} Options: {listed}")
    message = error["msg"].removeprefix("Value error, ")
    got = "" if error["type"] == "missing" else f" (got {shown(error['input'])})"
    return Problem(where, message[:1].lower() + message[1:] + got)
