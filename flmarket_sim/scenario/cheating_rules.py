"""Rules about cheats after the sale and the table [check]: what two places of a scenario say about
them and that cannot both hold."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from flmarket_sim.errors import DataError, InputError, plugin_errors
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.cheating_tables import CheckTable
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.problems import Problem
from flmarket_sim.scenario.rules import (
    SHARES_TOLERANCE,
    Tables,
    is_list,
    is_number,
    table_of,
    tables_of,
)

KEYS_OF = {  # of a consequence
    "deposit": ("deposit",),
    "exclusion": ("exclusion",),
    "reputation": ("memory", "least_reputation"),
}
NEEDED = {  # what a check may need, and how a scenario gives it
    "reference": "reads a gradient of the broker's own; give reference, a number of records",
    "history": "compares with earlier messages; give a history of at least 1 round",
}


def cheating_problems(tables: Tables) -> Iterator[Problem]:
    """Everything that two places say about cheats and checks and that cannot both hold."""
    for rule in (
        consequences_are_different,
        keys_have_their_consequence,
        checks_have_what_they_read,
        shares_of_cheats_are_of_one_whole,
        cheats_are_among_somebody,
    ):
        yield from rule(tables)


def consequences_are_different(tables: Tables) -> Iterator[Problem]:
    listed = _consequences(tables)
    where = ("check", "consequences")
    for name, times in Counter(listed).items():
        if times > 1:
            yield Problem(where, f"{name!r} is listed {times} times; it follows once")
    if {"no-payment", "partial-payment"} <= set(listed):
        yield Problem(where, "an owner who is not paid is not paid in part; give one of the two")


def keys_have_their_consequence(tables: Tables) -> Iterator[Problem]:
    """A key at its default is what a stored scenario has, and means nothing."""
    check, listed = table_of(tables, "check"), _consequences(tables)
    for name, keys in KEYS_OF.items():
        for key in keys if name not in listed else ():
            if key in check and check[key] != CheckTable.model_fields[key].default:
                yield Problem(
                    ("check", key),
                    f"is of the consequence {name!r}, which does not follow here; add it to "
                    f"consequences or leave {key} out",
                )


def checks_have_what_they_read(tables: Tables) -> Iterator[Problem]:
    """A check may say what it needs: `needs`, a tuple of "reference" and "history"."""
    check = table_of(tables, "check")
    name = check.get("name")
    if not isinstance(name, str):
        return
    try:
        needs = getattr(registry.checks.get(name), "needs", ())
    except InputError:
        return  # the check of plug-ins says what is wrong with the name
    for key in needs if isinstance(needs, tuple) else ():
        given = check.get(key, CheckTable.model_fields[key].default) if key in NEEDED else True
        if not given:
            yield Problem(("check", key), f"the check {name!r} {NEEDED[key]}")


def shares_of_cheats_are_of_one_whole(tables: Tables) -> Iterator[Problem]:
    by_whom: dict[str, list[float]] = {}
    for _, cheat in tables_of(table_of(tables, "owners"), "cheats"):
        share = cheat.get("share")
        if is_number(share) and 0 <= share <= 1:
            by_whom.setdefault(str(cheat.get("among", "all")), []).append(share)
    for among, shares in by_whom.items():
        total = math.fsum(shares)
        if total > 1 + SHARES_TOLERANCE:
            whom = "all owners" if among == "all" else f"the owners {among}"
            yield Problem(
                ("owners", "cheats"), f"the shares of the cheats sum to {total:g}, but {whom} are 1"
            )


def cheats_are_among_somebody(tables: Tables) -> Iterator[Problem]:
    owners = table_of(tables, "owners")
    shares = [one.get("share") for _, one in tables_of(owners, "behaviours")]
    if any(not is_number(share) or share > 0 for share in shares):
        return
    for i, cheat in tables_of(owners, "cheats"):
        if cheat.get("among") == "with behaviour":
            yield Problem(
                ("owners", "cheats", i, "among"),
                "no owner has a behaviour; add [[owners.behaviours]], or leave `among` out",
            )


def class_problems(scenario: Scenario) -> list[Problem]:
    """Cheats that take classes for others which the data do not have. A cheat may say which class
    has the largest number of those that it names: `largest_class`."""
    largest: dict[int, int] = {}
    for i, spec in enumerate(scenario.owners.cheats):
        found = getattr(registry.cheats.create(spec.name, **spec.options), "largest_class", None)
        if isinstance(found, int):
            largest[i] = found
    if not largest:
        return []
    source = registry.datasets.create(scenario.data.name, **scenario.data.options)
    try:
        with plugin_errors("data set", scenario.data.name):
            classes = len(np.asarray(source.class_counts(Streams(scenario.seed))))
    except (DataError, InputError):
        return []  # the files are not here, or are wrong; the run will say so
    return [
        Problem(
            ("owners", "cheats", i),
            f"there is no class {number}; the classes of this data set are 0 to {classes - 1}",
        )
        for i, number in largest.items()
        if number >= classes
    ]


def _consequences(tables: Tables) -> list[Any]:
    """The listed consequences that are texts; the defaults where there is no list."""
    check = table_of(tables, "check")
    listed = check.get("consequences", CheckTable.model_fields["consequences"].default)
    return [name for name in listed if isinstance(name, str)] if is_list(listed) else []
