"""How often a check accuses an owner who cheats: rehearsed on markets that she imagines.

She knows what everybody knows: the perturbation, the check and what was sold. She imagines that the
other owners are honest, sell what she sells, and have the same gradient as she, in a direction
drawn at random. So nobody looks more like her honest self than they, and checks that compare owners
are at their best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.checks.check import Evidence, PastRound
from flmarket_sim.errors import plugin_errors
from flmarket_sim.plugins import registry
from flmarket_sim.strategy.cheats.cheat import (
    Cheat,
    CheckedPlan,
    PublicRules,
    RemembersMessages,
    SaleView,
    check_plan,
    check_updates,
)

Floats = NDArray[np.float64]
SEED = 190_019  # rehearsals are the same in all runs, so that a resumed run goes on as before


@dataclass(frozen=True)
class Rehearsed:
    """By candidate, (J,): the chance of being accused, and the mean share of her payment that
    partial payment leaves her when she is (one half if it never happened)."""

    accused: Floats
    partial: Floats


def rehearse(
    names: Sequence[str | None], rules: PublicRules, privacy_loss: float, draws: int
) -> Rehearsed:
    """The same draws for all candidates: cheats by name; None is an honest owner."""
    assert rules.inspection is not None
    seed = [SEED, round(privacy_loss * 2**20)]
    generator = np.random.default_rng(seed)
    p_values = np.array([_one_draw(names, rules, privacy_loss, generator) for _ in range(draws)])
    level = rules.inspection.consequences.level
    accused = p_values <= level
    kept = np.where(accused, p_values / level, 0.0).sum(axis=0)
    count = accused.sum(axis=0)
    partial = np.divide(kept, count, out=np.full(len(names), 0.5), where=count > 0)
    return Rehearsed(accused.mean(axis=0), partial)


def _one_draw(
    names: Sequence[str | None],
    rules: PublicRules,
    privacy_loss: float,
    generator: np.random.Generator,
) -> Floats:
    """(J,) her p-value under each candidate, in the second of two rounds. In the first all are
    honest, so that there are messages to repeat and a step of the model to copy."""
    inspection = rules.inspection
    assert inspection is not None
    owners, dimension = max(rules.bidders, 2), rules.dimension
    direction = generator.standard_normal(dimension)
    updates = np.tile(direction * rules.clip, (owners, 1))
    losses = np.full(owners, privacy_loss)
    before = _released(rules, updates, losses, generator)
    honest = _released(rules, updates, losses, generator)
    reference = updates[0] if inspection.reference else None
    first = _evidence(rules, before, losses, (), reference)
    with plugin_errors("check", inspection.check.name):
        past = PastRound(before, first.owner, np.asarray(inspection.check.scores(first)))
    history = (past,) if inspection.history else ()
    start = np.zeros(dimension)
    found = []
    for name in names:
        messages = honest.copy()
        if name is not None:
            cheat: Cheat = registry.cheats.create(name)
            views = [
                _view(number, model, rules, privacy_loss, generator)
                for number, model in enumerate((start, start - before.mean(axis=0)))
            ]
            with plugin_errors("cheat", cheat.name):
                cheat.plan(views[0])
                cheat.updates(views[0], updates[:1])
                if isinstance(cheat, RemembersMessages):
                    cheat.sent(views[0].buyer, 0, before[0])
                plan = check_plan(cheat.name, cheat.plan(views[1]), views[1])
                made = check_updates(
                    cheat.name, cheat.updates(views[1], updates[:1].copy()), views[1]
                )
            messages[0] = _message(rules, plan, made, generator)
        evidence = _evidence(rules, messages, losses, history, reference)
        with plugin_errors("check", inspection.check.name):
            found.append(float(np.asarray(inspection.check.p_values(evidence))[0]))
    return np.array(found)


def _message(
    rules: PublicRules, plan: CheckedPlan, updates: Floats, generator: np.random.Generator
) -> Floats:
    """(D,) what a plan for one owner sends."""
    if plan.repeated is not None and plan.is_repeated()[0]:
        return np.asarray(plan.repeated[0])
    released = _released(rules, updates, plan.released_at, generator)
    return np.asarray(released[0] * plan.scale[0])


def _released(
    rules: PublicRules, updates: Floats, losses: Floats, generator: np.random.Generator
) -> Floats:
    prepared = rules.perturbation.prepare(updates, rules.clip)
    return np.asarray(rules.perturbation.release(prepared, losses, generator, rules.clip))


def _view(
    number: int,
    parameters: Floats,
    rules: PublicRules,
    privacy_loss: float,
    generator: np.random.Generator,
) -> SaleView:
    one = np.ones(1)
    return SaleView(
        round=number,
        buyer=0,
        owners=np.zeros(1, np.int64),
        privacy_loss=one * privacy_loss,
        records=one * 100.0,
        payment=one,
        parameters=parameters,
        cost=lambda loss, records: 0.0 * loss,
        rules=rules,
        rng=generator,
    )


def _evidence(
    rules: PublicRules,
    messages: Floats,
    losses: Floats,
    history: tuple[PastRound, ...],
    reference: Floats | None,
) -> Evidence:
    return Evidence(
        messages=messages,
        privacy_loss=losses,
        data_size=np.full(len(losses), 100.0),
        clip=rules.clip,
        perturbation=rules.perturbation,
        owner=np.arange(len(losses)),
        history=history,
        reference=reference,
    )
