"""What a curious reader tries on a view: the seed, true valuations, persons behind names."""

import json
import re
from collections import defaultdict

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.eventlog import write_view
from flmarket_sim.eventlog.participants import Participant
from flmarket_sim.eventlog.record import Role
from flmarket_sim.eventlog.view_numbers import KEY_FILE, new_numbers, write_key
from flmarket_sim.eventlog.view_warnings import view_warnings
from flmarket_sim.owners.population import choose_bidders
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.scenario_file import build_scenario

SEED, OWNERS, BIDDERS = 7321, 40, 8
MARKET = {
    "seed": SEED,
    "rounds": 6,
    "owners": {
        "count": OWNERS,
        "families": ["linear"],
        "behaviours": [{"name": "false-names", "share": 0.5, "identities": 3}],
    },
    "market": {"bidders": BIDDERS},
    "budget": {"factor": 0.3712},
    "model": {"name": "none"},
}


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    """A run, and the view of its broker."""
    folder = tmp_path_factory.mktemp("attacks")
    run = fm.run(build_scenario(MARKET), folder / "run").path
    write_key(run, fm.read_run(run), b"Z" * 32)  # the same numbers every time
    write_view(run, "broker", folder / "view")
    return run, folder / "view"


def seeds_that_ask_the_same(path, seeds):
    """Seeds under which the owners that a view (or a log) names are asked, round by round."""
    asked = defaultdict(set)
    for row in fm.read_events(path, "announcement").to_pylist():
        if row["receiver"] >= 0:
            asked[row["round"]].add(row["receiver"] % OWNERS)
    return [
        seed
        for seed in seeds
        if all(
            set(choose_bidders(Streams(seed), OWNERS, BIDDERS, 0, number).tolist()) == owners
            for number, owners in asked.items()
        )
    ]


def test_replaying_who_is_asked_does_not_find_the_seed(market):
    run, view = market
    seeds = range(SEED - 200, SEED + 200)
    assert seeds_that_ask_the_same(run, seeds) == [SEED], "the attack finds it in the log"
    assert seeds_that_ask_the_same(view, seeds) == []


def test_the_order_of_rows_does_not_say_who_is_who(market):
    """Events of one moment are in the order of the new numbers, which say nothing of the old."""
    run, view = market
    for kind in ("announcement", "bid", "allocation", "payment"):
        moments = defaultdict(list)
        for row in fm.read_events(view, kind).to_pylist():
            owner = max(row["sender"], row["receiver"])
            if owner >= 0:
                moments[row["round"], row["time"]].append(owner)
        assert all(owners == sorted(owners) for owners in moments.values())
    bids = {path: fm.read_events(path, "bid").to_pylist() for path in (run, view)}
    old, new = (
        {(row["round"], tuple(row[key] for key in ("value", "data_size"))): row["sender"]
         for row in rows}
        for rows in bids.values()
    )  # fmt: skip
    pairs = {(old[bid], new[bid]) for bid in new}
    assert len(pairs) == len({before for before, _ in pairs}), "one number for one name"
    before, after = np.array(sorted(pairs)).T
    assert len(pairs) > 30 and abs(np.corrcoef(before, after)[0, 1]) < 0.6


def test_the_numbers_are_those_of_the_key_which_is_in_no_view(market, tmp_path):
    run, view = market
    key = json.loads((run / KEY_FILE).read_text())["key"]
    assert len(bytes.fromhex(key)) == 32
    for path in view.rglob("*"):
        assert path.name != KEY_FILE and (path.is_dir() or key.encode() not in path.read_bytes())
    write_view(run, "broker", tmp_path / "again")
    same = [fm.read_events(path, "bid") for path in (view, tmp_path / "again")]
    assert same[0].equals(same[1])
    (run / KEY_FILE).rename(tmp_path / "kept")
    write_view(run, "broker", tmp_path / "other")
    other = fm.read_events(tmp_path / "other", "bid").column("sender").to_pylist()
    assert other != same[0].column("sender").to_pylist()
    (run / KEY_FILE).write_text("no key")
    with pytest.raises(InputError, match=r"view\.key cannot be read"):
        write_view(run, "broker", tmp_path / "none")
    kept = (tmp_path / "kept").read_text()
    turned = kept.replace('"key": "5a', '"key": "5b')
    (run / KEY_FILE).write_text(turned)
    with pytest.raises(InputError, match=r"view\.key is damaged"):
        write_view(run, "broker", tmp_path / "none")
    assert turned != kept
    write_key(run, {"scenario_sha256": "of another run", "seed": 1}, b"Z" * 32)
    with pytest.raises(InputError, match=r"view\.key is the key of another run"):
        write_view(run, "broker", tmp_path / "none")
    (tmp_path / "kept").replace(run / KEY_FILE)


def test_each_participant_has_numbers_of_her_own_and_an_owner_keeps_hers():
    names, key = {-1, *range(0, 60)}, b"secret" * 6
    broker = new_numbers(names, Participant(Role.BROKER, -1, OWNERS), key)
    assert sorted(broker) == sorted(broker.values()) == list(range(60))
    owner = new_numbers(names, Participant(Role.OWNER, 7, OWNERS), key)
    assert (owner[7], owner[47]) == (7, 47) and sorted(owner.values()) == list(range(60))
    assert broker != owner
    assert broker == new_numbers(names, Participant(Role.BROKER, -1, OWNERS), key)


def test_a_buyers_terms_do_not_give_true_valuations(tmp_path):
    """With one bidder a round, money over the factor is what her privacy is worth to her."""
    scenario = build_scenario(MARKET | {"market": {"bidders": 1}, "owners": {"count": 9}})
    run = fm.run(scenario, tmp_path / "run").path
    write_view(run, "buyer", tmp_path / "view")
    text = (tmp_path / "view" / "run.json").read_text()
    numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", text)]
    truth = [row["value"] for row in fm.read_events(run, "bid").to_pylist()]
    budgets = [
        row["budget"] for row in fm.read_events(tmp_path / "view", "announcement").to_pylist()
    ]
    assert len(budgets) == len(truth) == 6

    def found(factors):
        guesses = [money / factor for money in budgets for factor in factors if factor > 0]
        return sum(any(abs(guess / true - 1) < 1e-6 for guess in guesses) for true in truth)

    assert found([0.3712]) == 6, "the attack works where the factor is known"
    assert found(numbers) == 0
    assert "factor" not in text and "name" not in json.loads(text)["scenario"]


def test_a_buyer_who_has_an_amount_of_money_sees_it(tmp_path):
    run = fm.run(build_scenario(MARKET | {"budget": {"amount": 55.0}}), tmp_path / "run").path
    facts = write_view(run, "buyer", tmp_path / "view")
    assert facts["scenario"]["buyers"][0]["budget"] == {"amount": [55.0, 55.0]}


def linked(rows, claim):
    """Pairs of bids of one round with the same claim."""
    rounds = defaultdict(list)
    for row in rows:
        rounds[row["round"]].append(claim(row))
    return sum(len(claims) - len(set(claims)) for claims in rounds.values())


def test_names_of_one_person_are_not_linked_by_what_they_say_alike(market):
    run, view = market
    rows = fm.read_events(view, "bid").to_pylist()
    people = [row for row in fm.read_events(run, "bid").to_pylist() if row["person"] is not None]
    assert len(people) > 20

    def for_a_record(row):
        return float(f"{row['value'] / row['privacy_budget'] / row['data_size']:.9g}")

    assert linked(rows, lambda row: round(row["privacy_budget"], 9)) == 0
    assert linked(rows, for_a_record) == 0
    for name in {row["sender"] for row in rows}:
        claims = {row["privacy_budget"] for row in rows if row["sender"] == name}
        assert len(claims) == 1, "a budget that changed from round to round would be conspicuous"


def test_small_seeds_are_worth_a_warning(market, tmp_path):
    run, _ = market
    (warning,) = view_warnings(run)
    assert "7321" in warning and "--set seed=" in warning
    large = fm.run(build_scenario(MARKET | {"seed": 2**62 + 9, "rounds": 1}), tmp_path / "run")
    assert view_warnings(large.path) == []
