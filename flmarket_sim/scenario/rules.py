"""Rules about several places of a scenario at once, each declared once.

A rule takes the plain tables of a scenario, in which anything may be wrong, and yields a Problem
with the path of each violation. Values of a wrong type are the business of the model's types, so a
rule ignores them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeGuard

import numpy as np

from flmarket_sim.errors import DataError, InputError, plugin_errors
from flmarket_sim.learning.buyer_model import NoModel, TrainsLocally
from flmarket_sim.learning.dataset import NO_OWNERS, HasOwners, OwnFiles
from flmarket_sim.learning.local_training import cannot_train_locally
from flmarket_sim.learning.partitions import ChecksCounts, KeepsOwners
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import (
    HARDENED,
    LARGEST_EXPONENTIAL,
    TOO_EXPONENTIAL,
    Market,
    Owners,
    Scenario,
)
from flmarket_sim.scenario.problems import Problem, values
from flmarket_sim.scenario.toml_lines import PathKeys

Tables = dict[str, Any]
SHARES_TOLERANCE = 1e-9
HARDENED_PERTURBATIONS = ("laplace", "duchi-l2")
COMMON: PathKeys = ("perturbation",)  # the scenario's own


def cross_problems(tables: Tables) -> Iterator[Problem]:
    """Everything that two places say and that cannot both hold."""
    for rule in (
        bidders_are_owners,
        valuations_are_finite,
        shares_are_of_one_whole,
        hardened_noise_is_not_repeated,
        hardened_noise_exists,
        all_gradients_have_one_promise,
        a_budget_is_one_of_two,
        buyers_have_different_names,
        models_can_train_locally,
        cheats_need_messages,
        counterfactuals_are_honest,
        reputation_needs_one_auction,
        a_validation_loss_is_of_a_model,
    ):
        yield from rule(tables)


def bidders_are_owners(tables: Tables) -> Iterator[Problem]:
    owners, market = table_of(tables, "owners"), table_of(tables, "market")
    bidders, count = market.get("bidders", Market().bidders), owners.get("count", Owners().count)
    if isinstance(bidders, int) and isinstance(count, int) and bidders > count >= 1:
        where = ("market", "bidders") if "bidders" in market else ("owners", "count")
        yield Problem(
            where,
            f"{bidders} owners are asked a round (market.bidders), "
            f"but there are only {count} (owners.count)",
        )


def valuations_are_finite(tables: Tables) -> Iterator[Problem]:
    owners = table_of(tables, "owners")
    families = owners.get("families", Owners().families)
    budget = owners.get("privacy_budget", list(Owners().privacy_budget))
    largest = budget[-1] if isinstance(budget, list) and budget else budget
    exponential = is_list(families) and "exponential" in families
    if exponential and is_number(largest) and LARGEST_EXPONENTIAL < largest < math.inf:
        yield Problem(("owners", "privacy_budget"), TOO_EXPONENTIAL)
    others = [name for name in families if _is_plugin(name)] if is_list(families) else []
    for name in others if is_number(largest) and 0 < largest < math.inf else []:
        worth = _worth(name, float(largest))
        if worth is not None and not 0 <= worth < math.inf:
            yield Problem(
                ("owners", "privacy_budget"),
                f"a privacy budget of {largest:g} is worth {worth:g} by the valuation family "
                f"{name!r}; it must be worth a finite amount of at least 0",
            )


def shares_are_of_one_whole(tables: Tables) -> Iterator[Problem]:
    behaviours = tables_of(table_of(tables, "owners"), "behaviours")
    shares = [behaviour.get("share") for _, behaviour in behaviours]
    total = math.fsum(share for share in shares if is_number(share) and 0 <= share <= 1)
    if total > 1 + SHARES_TOLERANCE:
        yield Problem(
            ("owners", "behaviours"),
            f"the shares of the behaviours sum to {total:g}, but all owners are 1",
        )


def hardened_noise_is_not_repeated(tables: Tables) -> Iterator[Problem]:
    promises = {
        "seed": "a seed is given, and the same seed must give the same run",
        "sweep": "a sweep compares runs of the same seeds",
        "study": "a study compares runs of the same seeds",
    }
    promise = next((text for key, text in promises.items() if key in tables), None)
    if table_of(tables, "privacy").get("noise") == HARDENED and promise is not None:
        yield Problem(
            ("privacy", "noise"),
            f"hardened noise comes from the operating system and cannot be repeated, "
            f"but {promise}; leave that out, or use noise = 'simulation'",
        )


def hardened_noise_exists(tables: Tables) -> Iterator[Problem]:
    if table_of(tables, "privacy").get("noise") != HARDENED:
        return
    for path, spec in _perturbations(tables):
        if spec.get("name") not in HARDENED_PERTURBATIONS:
            names = " and ".join(map(repr, HARDENED_PERTURBATIONS))
            yield Problem(
                path,
                f"hardened noise exists for the perturbations {names} only; "
                "give one of them as [perturbation] name, or privacy.noise = 'simulation'",
            )


def all_gradients_have_one_promise(tables: Tables) -> Iterator[Problem]:
    """An owner's ledger has one delta a gradient, so all buyers need the same."""
    promises = [(path, _delta(spec)) for path, spec in _perturbations(tables)]
    first = promises[0][1]
    for path, delta in promises[1:]:
        if first is not None and delta is not None and delta != first:
            yield Problem(
                path,
                f"gradients are sold with delta = {delta:g} here and with delta = {first:g} to "
                "another buyer; one ledger cannot hold two promises",
            )


def a_budget_is_one_of_two(tables: Tables) -> Iterator[Problem]:
    places = [((), tables), *((("buyers", i), buyer) for i, buyer in tables_of(tables, "buyers"))]
    for path, place in places:
        budget = place.get("budget")
        if isinstance(budget, dict) and ("factor" in budget) == ("amount" in budget):
            yield Problem((*path, "budget"), "give either 'factor' or 'amount'")


def buyers_have_different_names(tables: Tables) -> Iterator[Problem]:
    names: set[str] = set()
    for i, buyer in tables_of(tables, "buyers"):
        name = buyer.get("name")
        if isinstance(name, str) and name in names:
            yield Problem(("buyers", i, "name"), f"another buyer is called {name!r} already")
        elif isinstance(name, str):
            names.add(name)


def models_can_train_locally(tables: Tables) -> Iterator[Problem]:
    """Only a plug-in can lack the ability: any torch module has it."""
    places = [((), tables), *((("buyers", i), buyer) for i, buyer in tables_of(tables, "buyers"))]
    for path, place in places if table_of(tables, "learning").get("update") == "local" else ():
        name = table_of(place, "model").get("name")
        if not isinstance(name, str) or ":" in name or name in registry.BUILT_IN["model"]:
            continue
        try:
            able = issubclass(registry.models.get(name), TrainsLocally)
        except InputError:
            continue  # the check of plug-ins says what is wrong with the name
        if not able:
            yield Problem((*path, "model", "name"), cannot_train_locally(name))


def cheats_need_messages(tables: Tables) -> Iterator[Problem]:
    """Nothing is sent in a market without learning, so there is nothing to cheat with."""
    cheats = tables_of(table_of(tables, "owners"), "cheats")
    if not cheats and "check" not in tables:
        return
    places = [((), tables), *((("buyers", i), buyer) for i, buyer in tables_of(tables, "buyers"))]
    for path, place in places:
        if table_of(place, "model").get("name") == NoModel.name:
            what = "owners cheat with messages" if cheats else "a check reads messages"
            yield Problem(
                (*path, "model", "name"),
                f"{what}, and a market without learning has none; choose another model, or leave "
                f"out {'owners.cheats' if cheats else 'check'}",
            )


def counterfactuals_are_honest(tables: Tables) -> Iterator[Problem]:
    """An owner who cheats decides by what she truly does, which depends on what she is offered."""
    cheats = tables_of(table_of(tables, "owners"), "cheats")
    if cheats and table_of(tables, "market").get("counterfactual") is True:
        yield Problem(
            ("market", "counterfactual"),
            "counterfactual auctions do not know what owners who cheat would do after other "
            "offers; leave out counterfactual or owners.cheats",
        )


def reputation_needs_one_auction(tables: Tables) -> Iterator[Problem]:
    """Reputation weighs bids before they are decided together, and nobody bids twice."""
    listed = table_of(tables, "check").get("consequences")
    if not (is_list(listed) and "reputation" in listed):
        return
    if table_of(tables, "market").get("counterfactual") is True:
        yield Problem(
            ("market", "counterfactual"),
            "counterfactual auctions do not know reputations; leave one of them out",
        )
    places = [((), tables), *((("buyers", i), buyer) for i, buyer in tables_of(tables, "buyers"))]
    for path, place in places:
        name = table_of(place, "auction").get("name")
        try:
            in_turn = isinstance(name, str) and hasattr(registry.auctions.get(name), "ask")
        except InputError:
            continue  # the check of plug-ins says what is wrong with the name
        if in_turn:
            yield Problem(
                (*path, "auction", "name"),
                f"{name!r} sells in turn by menus, and a reputation weighs bids that are decided "
                "together; leave 'reputation' out of check.consequences",
            )


def a_validation_loss_is_of_a_model(tables: Tables) -> Iterator[Problem]:
    if table_of(tables, "contribution").get("value") != "validation-loss":
        return
    common = table_of(tables, "model").get("name")
    for name in [
        table_of(buyer, "model").get("name", common) for _, buyer in tables_of(tables, "buyers")
    ] or [common]:
        if name == NoModel.name:
            yield Problem(
                ("contribution", "value"),
                "a validation loss is that of a model, but a buyer has the model 'none'; give "
                "value = 'error-bound', or a model",
            )


def numbers_are_finite(tables: Tables) -> Iterator[Problem]:
    """run.json cannot hold other numbers, and no type forbids them in the options of a plug-in."""
    for path, value in values(tables, "the scenario"):
        if isinstance(value, float) and not math.isfinite(value):
            yield Problem(path, f"must be a finite number (got {value})")


def population_problems(scenario: Scenario) -> list[Problem]:
    """What is wrong with the user's own files, and too few records for so many owners."""
    source = registry.datasets.create(scenario.data.name, **scenario.data.options)
    partition = registry.partitions.create(
        scenario.owners.partition.name, **scenario.owners.partition.options
    )
    streams, count = Streams(scenario.seed), scenario.owners.count
    where: PathKeys = ("data",)
    try:
        if isinstance(source, OwnFiles):
            source.class_counts(streams)
        if isinstance(partition, KeepsOwners):
            where = ("owners", "partition")
            if not isinstance(source, HasOwners):
                raise InputError(NO_OWNERS)
            counts = source.owner_counts(streams)
            where = ("owners", "count")
            partition.chosen(counts, count)
        elif isinstance(partition, ChecksCounts):
            where = ("owners", "count")
            with plugin_errors("data set", scenario.data.name):
                class_counts = source.class_counts(streams)
            partition.check(class_counts, count)
    except InputError as error:
        return [Problem(where, str(error))]
    except DataError:
        pass  # the files are not here; the run will say so
    return []


def _perturbations(tables: Tables) -> list[tuple[PathKeys, Tables]]:
    """The perturbation of every buyer, with its place; without buyers the scenario's own."""
    default = Scenario.model_fields["perturbation"].default.name
    common = table_of(tables, "perturbation") or {"name": default}
    places: list[tuple[PathKeys, Tables]] = []
    for i, buyer in tables_of(tables, "buyers"):
        own = buyer.get("perturbation")
        whose: PathKeys = ("buyers", i, "perturbation") if isinstance(own, dict) else COMMON
        places.append((whose, own if isinstance(own, dict) else common))
    return places or [(COMMON, common)]


def _delta(spec: Tables) -> float | None:
    """The delta of a perturbation's promise; None where it cannot be made."""
    options = {key: value for key, value in spec.items() if key != "name"}
    try:
        made = registry.perturbations.create(str(spec.get("name")), **options)
        return float(getattr(made, "delta", 0.0))
    except Exception:  # foreign code; other checks name what is wrong with it
        return None


def table_of(tables: Tables, key: str) -> Tables:
    """The table at a key; an empty one if there is none."""
    table = tables.get(key)
    return table if isinstance(table, dict) else {}


def tables_of(tables: Tables, key: str) -> list[tuple[int, Tables]]:
    """The tables of a list, each with its position."""
    entries = tables.get(key)
    entries = entries if isinstance(entries, list) else []
    return [(i, entry) for i, entry in enumerate(entries) if isinstance(entry, dict)]


def is_list(value: Any) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(value, list | tuple)


def _is_plugin(name: Any) -> bool:
    """Whether a text names a family from elsewhere."""
    return isinstance(name, str) and name not in registry.BUILT_IN["family"]


def _worth(family: str, loss: float) -> float | None:
    """What a family says a loss is worth; None where there is no such family, or it fails."""
    try:
        return float(registry.families.create(family).value(np.array([loss]))[0])
    except Exception:  # foreign code; other checks name what is wrong with it
        return None


def is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float)
