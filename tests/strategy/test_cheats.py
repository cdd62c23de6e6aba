"""What cheats do with what they sold, and that the rational cheat is what she says she is."""

from dataclasses import replace

import numpy as np
import pytest

from flmarket_sim.checks.consequences import Consequences
from flmarket_sim.errors import ContractError, InputError
from flmarket_sim.perturbation import create as perturbation_named
from flmarket_sim.plugins import registry
from flmarket_sim.strategy.cheats.cheat import (
    Plan,
    PublicInspection,
    PublicRules,
    SaleView,
    check_plan,
    check_updates,
)
from flmarket_sim.strategy.cheats.rational import Rational, rates_of
from flmarket_sim.strategy.cheats.rehearsal import rehearse
from tests.support.exact_norm_check import AgainstOthers, ExactNorm, Suspicious

D = 24
OPTIONS = {"targeted-poison": {"source": 2, "target": 0}}
RULES = PublicRules(
    perturbation=perturbation_named("priv-unit", length="unit"),
    clip=0.5,
    dimension=D,
    classes=4,
    bidders=5,
    asked_share=0.1,
    rounds=400,
)


def sale(losses=(0.5, 2.0, 8.0), payment=1.0, rate=0.3, number=0, rules=RULES, seed=3):
    """Owners whose costs are rate x loss x share of their hundred records."""
    losses = np.array(losses, float)
    return SaleView(
        round=number,
        buyer=0,
        owners=np.arange(len(losses)) + 10,
        privacy_loss=losses,
        records=np.full(len(losses), 100.0),
        payment=np.full(len(losses), payment) * losses,
        parameters=np.linspace(0, 1, D) * (number + 1),
        cost=lambda loss, records: rate * np.asarray(loss) * np.asarray(records) / 100.0,
        rules=rules,
        rng=np.random.default_rng(seed),
    )


def looked_for(check, *kinds, level=0.05, history=2, **numbers):
    rules = Consequences(level, frozenset(kinds), **numbers)
    return replace(RULES, inspection=PublicInspection(check, rules, history, False))


def plan_of(name, view, **options):
    cheat = registry.cheats.create(name, **options)
    return cheat, check_plan(name, cheat.plan(view), view)


@pytest.mark.parametrize("name", registry.cheats.names())
def test_every_cheat_makes_a_plan_that_its_owners_can_carry_out(name):
    view = sale()
    cheat, plan = plan_of(name, view, **OPTIONS.get(name, {}))
    updates = np.random.default_rng(0).standard_normal((3, D))
    made = check_updates(name, cheat.updates(view, updates.copy()), view)
    assert made.shape == (3, D) and np.isfinite(made).all()
    assert (plan.lost <= plan.released_at).all()


def test_more_noise_is_the_noise_of_a_smaller_loss():
    view = sale()
    _, plan = plan_of("more-noise", view, factor=4.0)
    np.testing.assert_allclose(plan.released_at, view.privacy_loss / 4)
    laplace = perturbation_named("laplace")
    honest, cheating = (laplace.noise_scale(e, 1.0) for e in (view.privacy_loss, plan.released_at))
    np.testing.assert_allclose(cheating / honest, 4.0)


@pytest.mark.parametrize("name", ["nothing-but-noise", "public-direction"])
def test_a_message_that_does_not_depend_on_records_costs_nothing(name):
    view = sale()
    cheat, plan = plan_of(name, view)
    one, other = (
        cheat.updates(replace(view, rng=np.random.default_rng(5)), updates)
        for updates in (np.ones((3, D)), -np.ones((3, D)))
    )
    assert (plan.lost == 0).all() and (one == other).all()
    np.testing.assert_allclose(plan.released_at, view.privacy_loss)


def test_the_public_direction_is_the_last_step_of_the_model():
    cheat = registry.cheats.create("public-direction")
    first, second = sale(number=0), sale(number=1)
    cheat.updates(first, np.zeros((3, D)))
    made = cheat.updates(second, np.zeros((3, D)))
    np.testing.assert_allclose(made, np.tile(first.parameters - second.parameters, (3, 1)))


def test_a_stale_owner_sends_her_last_message_as_often_as_she_says():
    cheat = registry.cheats.create("stale", uses=2)
    repeated = []
    for number in range(6):
        view = sale((1.0,), number=number)
        plan = check_plan("stale", cheat.plan(view), view)
        again = bool(plan.is_repeated()[0])
        message = plan.repeated[0] if again else np.full(D, float(number))
        assert (plan.lost[0] == 0) == again
        cheat.sent(0, 10, message)
        repeated.append(again)
    assert repeated == [False, True, False, True, False, True]


def test_poison_flips_messages_and_labels():
    view = sale()
    updates = np.ones((3, D))
    cheat, plan = plan_of("sign-flip", view, scale=3.0)
    assert (cheat.updates(view, updates) == -1).all() and (plan.scale == 3).all()
    assert plan_of("label-flip", view)[1].labels.tolist() == [1, 2, 3, 0]
    assert plan_of("targeted-poison", view, source=2, target=0)[1].labels.tolist() == [0, 1, 0, 3]
    with pytest.raises(InputError, match="no class 9"):
        plan_of("targeted-poison", view, source=9, target=0)
    with pytest.raises(InputError, match="two classes"):
        registry.cheats.create("targeted-poison", source=1, target=1)


def test_fewer_records_are_at_least_one():
    assert plan_of("fewer-records", sale(), share=0.25)[1].records.tolist() == [25.0] * 3
    assert plan_of("fewer-records", sale(), share=0.001)[1].records.tolist() == [1.0] * 3


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan(released_at=np.zeros(3)), "above 0"),
        (Plan(lost=np.full(3, 99.0)), "at most what it is released at"),
        (Plan(records=np.full(3, 101.0)), "at most those that were sold"),
        (Plan(records=np.full(3, 1.5)), "whole"),
        (Plan(scale=np.full(3, np.nan)), "finite"),
        (Plan(scale=np.ones(2)), "shape"),
        (Plan(labels=np.array([0, 1, 2, 4])), "classes"),
        (Plan(repeated=np.zeros((3, D + 1))), "repeated messages"),
        ("no plan", "not a Plan"),
    ],
)
def test_a_plan_that_nobody_can_carry_out_is_refused(plan, message):
    with pytest.raises(ContractError, match=message):
        check_plan("wrong", plan, sale())
    with pytest.raises(ContractError, match="updates must have shape"):
        check_updates("wrong", np.zeros((2, D)), sale())


# -- the rational cheat ----------------------------------------------------------------------------


PLAYED = 400_000  # rounds


def played(rules, gain_of, chance, exclusion, seed):
    """The mean gain a round of an owner who meets one sale again and again, and always makes the
    same choice: chances are drawn, and bids do not count while she is excluded."""
    rng = np.random.default_rng(seed)
    asked = rng.random(PLAYED) < rules.asked_share
    accused = rng.random(PLAYED) < chance
    total, number = 0.0, 0
    while number < PLAYED:
        if asked[number]:
            total += gain_of(accused[number])
            if accused[number]:
                number += exclusion
        number += 1
    return total / PLAYED


def slow_choices(cheat, view, row):
    """For each choice of one owner: her mean gain a round when she plays it for ever, and the
    expected gain of one sale, with the consequences spelled out."""
    rules = view.rules.inspection.consequences
    step = round(2 * np.log2(view.privacy_loss[row]))
    found = rehearse(cheat.names, view.rules, 2.0 ** (step / 2), cheat.rehearsals)
    means, gains = [], []
    for place, name in enumerate(cheat.names):
        plan = Plan() if name is None else registry.cheats.create(name).plan(view)
        lost = (plan.released_at if plan.lost is None else plan.lost) if name else None
        lost = view.privacy_loss[row] if lost is None else lost[row]
        records = view.records[row] if plan.records is None else plan.records[row]
        each = np.full(len(view.owners), 1.0)
        cost = view.cost(each * lost, each * records)[row]

        def gain(accused, cost=cost, partial=found.partial[place], payment=view.payment[row]):
            money = payment
            if accused and "no-payment" in rules.kinds:
                money = 0.0
            elif accused and "partial-payment" in rules.kinds:
                money = payment * partial
            if accused and "deposit" in rules.kinds:
                money -= rules.deposit * payment
            return money - cost

        chance = found.accused[place]
        away = rules.exclusion if "exclusion" in rules.kinds else 0
        means.append(played(view.rules, gain, chance, away, seed=place))
        gains.append(chance * gain(True) + (1.0 - chance) * gain(False))
    return np.array(means), np.array(gains)


@pytest.mark.parametrize(
    ("check", "kinds"),
    [
        (ExactNorm(), ("no-payment",)),
        (ExactNorm(), ("deposit", "exclusion")),
        (Suspicious(0.02), ("partial-payment", "exclusion")),
        (Suspicious(0.5), ("no-payment",)),
        (AgainstOthers(), ("exclusion",)),
        (AgainstOthers(), ("no-payment", "exclusion")),
    ],
)
@pytest.mark.parametrize("rate", [0.01, 0.6])
def test_the_rational_cheat_chooses_what_earns_most_when_it_is_played_for_ever(check, kinds, rate):
    view = sale((0.5, 2.0, 8.0), rate=rate, rules=looked_for(check, *kinds))
    cheat = Rational(rehearsals=12)
    plan = cheat.plan(view)
    for row in range(3):
        means, gains = slow_choices(cheat, view, row)
        chosen = cheat.choices[0][row]
        by_chance = 0.02 * view.rules.asked_share * view.payment[row]
        assert means[chosen] >= means.max() - by_chance
        cost = view.cost(plan.lost, plan.records)[row]
        assert plan.expected[row] - cost == pytest.approx(gains[chosen])


def test_without_a_check_she_sends_nothing_but_noise():
    cheat = Rational()
    view = sale()
    plan = cheat.plan(view)
    assert {cheat.names[choice] for choice in cheat.choices[0]} == {"nothing-but-noise"}
    assert (plan.lost == 0).all() and (plan.expected == view.payment).all()


def test_a_cheat_that_a_check_sees_is_not_chosen():
    """PrivUnit's norm gives more noise away, and nothing but noise has the right norm."""
    view = sale(rules=looked_for(ExactNorm(), "no-payment"))
    only = Rational(cheats=("more-noise",), rehearsals=4)
    only.plan(view)
    assert (only.choices[0] == 0).all()
    every = Rational(rehearsals=4)
    every.plan(view)
    assert {every.names[choice] for choice in every.choices[0]} == {"nothing-but-noise"}


def test_honesty_comes_first_where_cheating_gains_nothing():
    free = sale(rate=0.0, rules=looked_for(ExactNorm(), "no-payment"))
    cheat = Rational(rehearsals=2)
    cheat.plan(free)
    assert (cheat.choices[0] == 0).all()


def test_what_the_rational_cheat_cannot_choose_is_refused():
    with pytest.raises(InputError, match="false labels save nothing"):
        Rational(cheats=("label-flip",)).plan(sale())
    with pytest.raises(InputError, match="does not choose itself"):
        registry.cheats.create("rational", cheats=["rational"])
    with pytest.raises(InputError, match="did you mean 'stale'"):
        registry.cheats.create("rational", cheats=["stal"])


def rates(chances, rounds_left=400, exclusion=50, costs=None, losses=(2.0,), asked=0.1):
    """(J,) rates and expected money of plans that lose `costs` of e = 2, when all are excluded."""
    rules = looked_for(Suspicious(), "exclusion", exclusion=exclusion)
    rules = replace(rules, asked_share=asked, rounds=rounds_left + 1)
    view = sale(losses, rules=rules)
    plans = [check_plan("one", Plan(lost=np.array([c])), view) for c in costs or [2.0]]
    chances = np.array(chances)[:, None]
    found, money = rates_of(view, plans, chances, np.full_like(chances, 0.5))
    return found[:, 0], money[:, 0]


@pytest.mark.parametrize("exclusion", [2, 50, 5000])
def test_a_gain_for_its_time_is_what_many_sales_with_exclusions_bring(exclusion):
    for chance in (0.0, 0.05, 0.5, 1.0):
        rate, money = rates([chance], rounds_left=10**6, exclusion=exclusion, asked=0.4)
        rules = replace(RULES, asked_share=0.4)
        slow = played(rules, lambda accused: 2.0 - 0.6, chance, exclusion, seed=1)
        assert 0.4 * rate[0] == pytest.approx(slow, rel=0.1, abs=2e-5)
        assert money[0] == 2.0


def test_long_exclusions_make_a_cheat_honest_and_do_not_stop_her_from_selling():
    """Honesty gains 1.4 and is accused once in twenty sales; who loses nothing gains 2.0, and every
    second message of hers is accused."""
    for exclusion, best in ((1, 1), (10**6, 0)):
        rate, money = rates([0.05, 0.5], exclusion=exclusion, costs=[2.0, 0.0])
        assert rate.argmax() == best
        assert (rate > 0).all() and (money == 2.0).all()


def test_in_the_last_round_an_exclusion_threatens_nobody():
    rate, _ = rates([0.05, 0.5], rounds_left=0, exclusion=10**6, costs=[2.0, 0.0])
    assert rate == pytest.approx([1.4, 2.0])


def test_memories_of_cheats_survive_as_arrays():
    for name in ("stale", "public-direction", "rational"):
        cheat, again = registry.cheats.create(name), registry.cheats.create(name)
        for number in range(2):
            view = sale(number=number)
            cheat.plan(view)
            cheat.updates(view, np.ones((3, D)))
            if hasattr(cheat, "sent"):
                for owner in view.owners.tolist():
                    cheat.sent(0, owner, np.full(D, float(owner)))
        stored = {key: np.asarray(value) for key, value in cheat.state().items()}
        assert stored and all(array.dtype.kind in "if" for array in stored.values())
        again.restore(stored)
        assert again.state().keys() == stored.keys()
        assert all((np.asarray(again.state()[key]) == stored[key]).all() for key in stored)
