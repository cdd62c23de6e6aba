"""What behaviours say, seen alone, and what a scenario may say of them."""

import re

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError, ScenarioError
from flmarket_sim.owners.owner_types import OwnerTypes
from flmarket_sim.owners.population import Population
from flmarket_sim.owners.valuation import FAMILIES, STEP
from flmarket_sim.plugins import registry
from flmarket_sim.scenario.scenario_file import load_scenario, parse_scenario
from flmarket_sim.strategy.behaviours import CohortView, Feedback
from flmarket_sim.strategy.behaviours.behaviour import check_reports
from flmarket_sim.strategy.behaviours.coalition import settled
from flmarket_sim.strategy.behaviours.strategy_grid import OwnerRows
from tests.support.paths import ROOT

OPTIONS = {"scale": {"factor": 2.0}, "pretend": {"family": "quadratic"}}


def view(
    n=6, mine=(0, 2, 5), families=FAMILIES, auction="pay-as-bid", number=0, sizes=None, seed=0
):
    """A market of n owners out of 20, of whom `mine` have the behaviour."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, len(families), 20)
    people = Population(
        np.array([FAMILIES.index(families[c]) for c in code], np.int8),
        rng.uniform(0.5, 1.5, 20),
        rng.uniform(0.5, 2.0, 20),
        rng.integers(1, 200, 20) if sizes is None else np.full(20, sizes),
    )
    owners = rng.choice(20, n, replace=False)
    asked, slots = people.profiles(owners), np.array(mine)
    bids = asked.bids(8)
    budget = 0.5 * float(asked.total_value()[0])
    return CohortView(
        number,
        0,
        owners[slots],
        slots,
        budget,
        fm.auctions.create(auction),
        np.random.default_rng(number),
        asked,
        bids,
        people,
    )


@pytest.mark.parametrize("name", registry.behaviours.names())
@pytest.mark.parametrize("n", [1, 6])
def test_every_behaviour_tells_what_its_owners_can(name, n):
    for seed in range(3):
        seen = view(n, (0,) if n == 1 else (0, 2, 5), seed=seed)
        behaviour = registry.behaviours.create(name, **OPTIONS.get(name, {}))
        told = check_reports(name, behaviour.report(seen), seen)
        zero = np.zeros(len(seen.owners))
        for after in ("learn", "share"):
            getattr(behaviour, after, lambda feedback: None)(Feedback(seen, zero, zero, zero))
        assert len(told.values) >= len(seen.owners)


@pytest.mark.parametrize("name", ["truthful", "scale", "shade", "pretend"])
def test_family_and_rate_in_the_log_describe_the_report(name):
    seen = view(20, tuple(range(20)))
    options = OPTIONS | {"shade": {"privacy_budget": 0.5, "data_size": 0.5}}
    told = registry.behaviours.create(name, **options.get(name, {})).report(seen)
    described = fm.Profiles(
        np.asarray(told.family)[None],
        told.rate[None],
        told.privacy_budget[None],
        told.data_size[None],
    )
    assert described.bids(8).values[0] == pytest.approx(told.values)


def test_scaling_moves_values_only_and_shading_keeps_them_true():
    seen = view(20, tuple(range(20)))
    scaled = registry.behaviours.create("scale", factor=3.0).report(seen)
    assert np.array_equal(scaled.values, 3.0 * seen.values) and np.array_equal(
        scaled.privacy_budget, seen.privacy_budget
    )
    shaded = registry.behaviours.create("shade", privacy_budget=0.5).report(seen)
    assert np.array_equal(shaded.privacy_budget, 0.5 * seen.privacy_budget)
    assert shaded.values[:, 7] == pytest.approx(
        seen.values[:, 3]
    )  # all of half a budget is half of the whole one


def test_who_pretends_to_be_exponential_with_a_huge_budget_is_refused():
    people = Population(np.zeros(2, np.int8), np.ones(2), np.full(2, 800.0), np.full(2, 5))
    asked = people.profiles(np.arange(2))
    rng, auction = np.random.default_rng(0), fm.auctions.create("all-in")
    seen = CohortView(
        0, 0, np.arange(2), np.arange(2), 10.0, auction, rng, asked, asked.bids(8), people
    )
    with pytest.raises(InputError, match="beyond all money"):
        registry.behaviours.create("pretend", family="exponential").report(seen)


def test_an_owner_with_one_record_has_one_name():
    told = registry.behaviours.create("false-names", identities=4).report(view(sizes=1))
    assert told.of.tolist() == [0, 1, 2]
    told = registry.behaviours.create("false-names", identities=4).report(view(sizes=10))
    assert told.data_size.tolist() == [3, 3, 2, 2] * 3


def test_names_in_disguise_say_nothing_alike_ask_no_less_than_the_truth_and_little_more():
    seen = view(20, tuple(range(20)), sizes=12)
    plain, told = (
        registry.behaviours.create("false-names", identities=3, disguise=part).report(seen)
        for part in (0.0, 0.02)
    )
    first = np.arange(len(told.of)) % 3 == 0
    assert len(np.unique(told.privacy_budget)) == len(np.unique(told.rate)) == 60
    share = told.privacy_budget / plain.privacy_budget
    assert (share[first] == 1).all() and (share[~first] < 1).all() and share.min() > 0.98
    assert (told.values[first] == plain.values[first]).all()
    for row in range(60):
        types = OwnerTypes(*(np.asarray(column)[0, told.of[row]] for column in seen.asked.types))
        levels = told.privacy_budget[row] * np.arange(1, 9) / 8
        true = types.value(levels, np.full(8, told.data_size[row]))
        if types.family == STEP:  # the part of her cost
            true = true * told.data_size[row] / types.data_size
        assert (told.values[row] >= true * (1 - 1e-12)).all()
        assert (told.values[row] <= true * 1.042).all()


def test_each_name_may_sell_the_whole_budget_and_together_they_ask_what_the_owner_would():
    seen = view(20, tuple(range(20)), sizes=12)
    told = registry.behaviours.create("false-names", identities=3, disguise=0.0).report(seen)
    assert np.array_equal(told.privacy_budget, seen.privacy_budget[told.of])
    together = np.stack([np.bincount(told.of, level) for level in told.values.T], axis=1)
    assert together == pytest.approx(seen.values)


def test_a_best_response_against_the_prior_does_not_look_at_the_others():
    one, other = (view(6, seed=0), view(6, (0,), seed=0))
    rates = one.asked.rate.copy()
    rates[0, 1] = 1e-3  # a rival changes; only who knows her can answer to that
    changed = fm.Profiles(
        other.asked.family, rates, other.asked.privacy_budget, other.asked.data_size
    )
    seen = [
        CohortView(
            0,
            0,
            other.owners,
            other.slots,
            60.0,
            other.auction,
            np.random.default_rng(0),
            asked,
            asked.bids(8),
            other.population,
        )
        for asked in (other.asked, changed)
    ]
    blind = [
        registry.behaviours.create("best-response", knows="prior", samples=3).report(s)
        for s in seen
    ]
    assert np.array_equal(blind[0].values, blind[1].values)


def test_a_coalition_earns_together_at_least_what_the_truth_would():
    seen = view(6, (0, 2, 5), auction="pay-as-bid")
    told = registry.behaviours.create("coalition", size=3).report(seen)

    def earned(values, budget, size):
        all_values, all_budget, all_size = (
            part.copy()
            for part in (
                seen.truthful.values,
                seen.truthful.privacy_budget,
                seen.truthful.data_size,
            )
        )
        all_values[0, seen.slots], all_budget[0, seen.slots], all_size[0, seen.slots] = (
            values,
            budget,
            size,
        )
        outcome = seen.auction.decide(
            fm.BidBatch(all_values, all_budget, all_size),
            np.array([seen.budget]),
            np.random.default_rng(0),
        )
        return seen.asked.utility(outcome.privacy_loss, outcome.payment, all_size)[
            0, seen.slots
        ].sum()

    honest = earned(seen.values, seen.privacy_budget, seen.data_size)
    assert earned(told.values, told.privacy_budget, told.data_size) > honest + 1.0


def test_debts_are_settled_with_few_payments():
    owed = [3.0, -5.0, 4.0, -2.0]
    moves = settled([10, 11, 12, 13], owed)
    for person, amount in zip([10, 11, 12, 13], owed, strict=True):
        assert (
            sum(m for _, payee, m in moves if payee == person)
            - sum(m for payer, _, m in moves if payer == person)
            == amount
        )
    assert len(moves) <= 3


def test_weights_multiply_by_what_a_strategy_paid():
    behaviour = registry.behaviours.create(
        "exp3", factors=[1.0, 2.0], privacy_budget=[1.0], exploration=0.2, learning_rate=0.5
    )
    seen = view(6, (0,))
    told = behaviour.report(seen)
    chosen = int(told.values[0, -1] > 1.5 * seen.values[0, -1])
    utility = 0.4 * seen.values[:, -1]
    behaviour.learn(Feedback(seen, np.ones(1), utility, utility))
    scores = behaviour.memory.table[0]
    assert scores[chosen] == pytest.approx(0.5 * 0.4 / 0.5) and scores[1 - chosen] == 0.0
    weight = np.exp(scores[chosen])
    assert behaviour.chances(np.array([0]))[0, chosen] == pytest.approx(
        0.8 * weight / (weight + 1) + 0.1
    )


def test_a_bandit_tries_everything_once_and_then_what_paid():
    behaviour = registry.behaviours.create(
        "bandit", factors=[0.5, 1.0, 2.0], privacy_budget=[1.0], epsilon=0.0
    )
    played = []
    for number in range(6):
        seen = view(6, (0,), number=number)
        factor = float(behaviour.report(seen).values[0, -1] / seen.values[0, -1])
        played.append(round(factor, 6))
        utility = seen.values[:, -1] * (0.3 if factor == pytest.approx(0.5) else 0.1)
        behaviour.learn(Feedback(seen, np.ones(1), utility, utility))
    assert sorted(played[:3]) == [0.5, 1.0, 2.0] and played[3:] == [0.5] * 3


def test_memory_is_for_owners_who_were_met():
    rows = OwnerRows(4)
    first = rows.rows(np.array([999_999, 5]), 10**6)
    rows.table[first] = [[1.0] * 4, [2.0] * 4]
    again = rows.rows(np.array([5, 7, 999_999]), 10**6)
    assert rows.table[again, 0].tolist() == [2.0, 0.0, 1.0] and len(rows.table) < 100
    many = rows.rows(np.arange(1000), 10**6)
    assert len(set(many.tolist())) == 1000 and rows.table[many[5], 0] == 2.0


# -- scenarios -------------------------------------------------------------------------------------


def test_everything_wrong_with_behaviours_is_said_at_once_with_its_line():
    text = """[owners]
count = 50
[[owners.behaviours]]
name = "scal"
share = 0.5
[[owners.behaviours]]
name = "scale"
share = 0.7
factr = 2.0
[[owners.behaviours]]
name = "shade"
share = 1.5
data_size = 0.0
[[owners.behaviours]]
name = "pretend"
family = "cubic"
from_round = -1
[[owners.behaviours]]
name = "coalition"
share = 0.1
effort = "endless"
[market]
counterfactual = "yes"
"""
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, "x.toml")
    message = str(caught.value)
    for expected in (
        r"x.toml:3: owners.behaviours: the shares of the behaviours sum to 1.3, "
        r"but all owners are 1",
        r"x.toml:4: owners.behaviours\[0\].name: unknown behaviour 'scal'; did you mean 'scale'\?",
        r"x.toml:6: owners.behaviours\[1\].factor: field required",
        r"x.toml:9: owners.behaviours\[1\].factr: 'scale' has no such option; "
        r"did you mean 'factor'\? Options: factor",
        r"x.toml:12: owners.behaviours\[2\].share: .*less than or equal to 1",
        r"x.toml:13: owners.behaviours\[2\].data_size: .*greater than 0",
        r"x.toml:14: owners.behaviours\[3\].share: is missing",
        r"x.toml:16: owners.behaviours\[3\].family: unknown valuation family 'cubic'",
        r"x.toml:17: owners.behaviours\[3\].from_round: .*greater than or equal to 0",
        r"x.toml:18: owners.behaviours\[4\]: there is no effort 'endless'",
        r"x.toml:23: market.counterfactual: .*boolean",
    ):
        assert re.search(expected, message), f"{expected}\n{message}"


def test_shares_that_sum_to_one_are_fine_whatever_the_rounding():
    text = "".join(
        f'[[owners.behaviours]]\nname = "truthful"\nshare = {share}\n' for share in [0.1] * 10
    )
    assert len(parse_scenario(text).owners.behaviours) == 10


def test_a_scenario_without_behaviours_has_the_hash_it_always_had():
    digest = "bc37ac960b0f6f9c"
    papers = '[perturbation]\nname = "laplace"\n[aggregation]\nerror = "coordinate"'
    assert parse_scenario(papers).digest().startswith(digest)
    assert (
        parse_scenario("[market]\ncounterfactual = false\n[owners]\nbehaviours = []").digest()
        == fm.Scenario().digest()
    )
    lying = parse_scenario('[[owners.behaviours]]\nname = "scale"\nfactor = 2.0\nshare = 0.5')
    assert lying.digest() != fm.Scenario().digest()
    assert parse_scenario("[market]\ncounterfactual = true").digest() != fm.Scenario().digest()


def test_the_study_of_liars_has_every_kind_of_lie():
    scenario = load_scenario(ROOT / "scenarios/studies/liars.toml")
    assert {b.name for b in scenario.owners.behaviours} | {"truthful"} == set(
        registry.behaviours.names()
    )
    assert scenario.market.counterfactual
