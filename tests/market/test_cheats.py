"""Owners who cheat after a sale, in a market: who they are, what leaves them, and what follows."""

from collections import defaultdict

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import ScenarioError
from flmarket_sim.market import simulation
from flmarket_sim.market.cheat_cast import CheatCast
from flmarket_sim.market.inspection import weighed_by
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.perturbation import create as perturbation_named
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.later_keys import without_later_keys
from flmarket_sim.scenario.scenario_file import build_scenario

CHECKS = "tests.support.exact_norm_check:"
SMALL = {"name": "synthetic", "records": 600, "features": 4, "classes": 3, "test_records": 50}
SAVING = ("more-noise", "nothing-but-noise", "stale", "public-direction", "fewer-records")
EVERY = (*SAVING, "sign-flip", "label-flip", "targeted-poison")


def market(cheats=(), check=None, rounds=4, **tables):
    named = [{"share": 1.0 / len(cheats), **cheat} for cheat in cheats]
    owners = {"count": 24, "cheats": named} | tables.pop("owners", {})
    found = {
        "rounds": rounds,
        "data": SMALL,
        "owners": owners,
        "market": {"bidders": 12},
        "budget": {"factor": [0.5, 1.5]},
        "perturbation": {"name": "priv-unit", "length": "unit"},
    }
    if check is not None:
        found["check"] = check
    return build_scenario(found | tables)


def rows(run, kind):
    return fm.read_events(run, kind).to_pylist()


def by_message(run, kind, side):
    return {(row["round"], row[side]): row for row in rows(run, kind)}


def suspicious(*consequences, **keys):
    return {"name": CHECKS + "Suspicious", "consequences": list(consequences)} | keys


def numbers(consequences):
    """Options of those consequences that have some."""
    given = {"deposit": 0.5, "exclusion": 1}
    return {key: value for key, value in given.items() if key in consequences}


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    """A market in which every owner has one of eight cheats."""
    scenario = market([{"name": name} for name in EVERY], rounds=8)
    return fm.run(scenario, tmp_path_factory.mktemp("every"))


def test_a_scenario_without_cheats_has_the_hash_and_the_log_that_it_had(tmp_path):
    plain = market()
    tables = plain.as_dict()
    assert tables["check"] is None and tables["owners"]["cheats"] == []
    older = without_later_keys(tables)
    assert "check" not in older and "cheats" not in older["owners"]
    run = fm.run(plain, tmp_path / "run").path
    assert not {path.name for path in (run / "events").iterdir()} & {"cheat", "verdict", "forfeit"}
    for table in ("owners", "ledger"):
        names = fm.sql(run, f"select * from {table}").column_names
        assert not {"cheat", "privacy_lost", "forfeited"} & set(names)


def test_the_log_has_the_truth_beside_the_claim(every):
    sent, truth = (by_message(every.path, kind, "sender") for kind in ("gradient", "cheat"))
    assert truth.keys() == sent.keys()  # everybody cheats
    assert {row["cheat"] for row in truth.values()} == set(EVERY)
    for key, row in truth.items():
        claimed = sent[key]
        assert row["privacy_loss"] == claimed["privacy_loss"]
        assert row["records"] == claimed["records"] >= row["true_records"]
        free = row["cheat"] in ("nothing-but-noise", "public-direction") or row["repeated"]
        factor = 0.25 if row["cheat"] == "more-noise" else 1.0
        wanted = 0.0 if free else factor * row["privacy_loss"]
        assert row["true_privacy_loss"] == pytest.approx(wanted)
        released = None if row["repeated"] else factor * row["privacy_loss"]
        assert row["released_at"] == (released and pytest.approx(released))
        fewer = max(1, row["records"] // 10)
        share = fewer if row["cheat"] == "fewer-records" else row["records"]
        assert row["true_records"] == share and row["scale"] == 1.0
    assert any(row["repeated"] for row in truth.values())


def test_the_ledger_counts_what_records_truly_lost(every):
    lost, sold = defaultdict(float), defaultdict(float)
    for row in rows(every.path, "cheat"):
        lost[row["sender"]] += row["true_privacy_loss"]
        sold[row["sender"]] += row["privacy_loss"]
    for row in fm.sql(every.path, "select * from ledger").to_pylist():
        assert row["privacy_lost"] == pytest.approx(lost[row["owner"]])
        assert row["privacy_sold"] == pytest.approx(sold[row["owner"]])
    assert sum(lost.values()) < sum(sold.values())


def test_only_her_own_view_shows_an_owner_her_cheat(every):
    for kind, column in (("cheat", "true_privacy_loss"), ("verdict", "score")):
        seen = fm.eventlog.visibility.seen_by(
            kind, next(c for c in fm.eventlog.KINDS[kind] if c.name == column)
        )
        assert seen == (("owner",) if kind == "cheat" else ("broker",))


def test_a_larger_share_keeps_the_cheats_of_a_smaller_one_and_bids_choose_among_whom():
    def cast(share, **more):
        behaviours = [{"name": "scale", "share": 0.5, "factor": 2.0}]
        owners = {"cheats": [{"name": "stale", "share": share} | more], "behaviours": behaviours}
        scenario = market(owners=owners)
        streams = Streams(scenario.seed)
        bidding = fm.market.behaviour_cast.Cast(scenario, streams)
        return CheatCast(scenario, streams, bidding).code >= 0, bidding.code >= 0

    small, large = cast(0.25)[0], cast(0.75)[0]
    assert small.sum() == 6 and large.sum() == 18 and (large | ~small).all()
    both, bids_falsely = cast(1.0, among="with behaviour")
    assert (both == bids_falsely).all() and both.sum() == 12
    neither, _ = cast(1.0, among="without behaviour")
    assert (neither == ~bids_falsely).all()


def test_a_sign_flip_releases_the_opposite_gradient():
    """At a huge privacy loss there is no noise to speak of."""
    tables = {
        "owners": {"privacy_budget": 400.0, "count": 12},
        "market": {"bidders": 12},
        "budget": {"factor": 5.0},
        "perturbation": {"name": "laplace"},
    }
    delivered = [
        simulation.rounds_only(market(cheats, rounds=1, **tables))[0]
        for cheats in ((), [{"name": "sign-flip"}])
    ]
    honest, flipped = (row["true_error"] for row in delivered)
    mean_norm = honest  # of the noise alone
    assert flipped > 20 * mean_norm and delivered[0]["spent"] == delivered[1]["spent"]


def test_more_noise_shows_in_the_true_error_and_not_in_the_bound():
    honest, noisy = (
        simulation.rounds_only(market(cheats, rounds=6))
        for cheats in ((), [{"name": "more-noise", "factor": 8.0}])
    )
    for before, after in zip(honest, noisy, strict=True):
        assert after["error_bound"] == pytest.approx(before["error_bound"])
        assert after["true_error"] > 4 * before["true_error"]


def test_owners_who_lose_less_accept_less():
    """An auction that pays too little is declined by honest owners only."""
    tables = {"auction": {"name": "posted-price"}, "budget": {"factor": 0.5}}
    low = {"behaviours": [{"name": "scale", "share": 1.0, "factor": 0.2}]}
    honest, noise = (
        simulation.rounds_only(market(cheats, owners=low, **tables))
        for cheats in ((), [{"name": "nothing-but-noise"}])
    )
    declined = [sum(r["winners"] - r["accepted"] for r in found) for found in (honest, noise)]
    assert declined[0] > 0 and declined[1] == 0


def ledger_sums(scenario):
    ledger = simulation.rounds_and_world(scenario)[1].ledger
    return {
        name: getattr(ledger, name).sum()
        for name in ("gradients", "earned", "cost", "sold", "lost", "forfeited")
    }


@pytest.mark.parametrize("family", ["step", "linear"])
@pytest.mark.parametrize("auction", ["all-in-critical", "seq-price"])
def test_a_cheat_that_saves_nothing_sells_what_honesty_sells_under_any_number_of_names(
    family, auction
):
    """Who flips signs loses what she sold, and a single-minded owner has one cost for all names."""
    names = [{"name": "false-names", "share": 0.5, "identities": 3}]
    watched = {"name": CHECKS + "ExactNorm", "consequences": []}
    honest, flipped = (
        ledger_sums(
            market(
                cheats,
                watched,
                owners={"count": 12, "behaviours": names, "families": [family], "cheats": cheats},
                auction={"name": auction},
            )
        )
        for cheats in ([], [{"name": "sign-flip", "share": 1.0}])
    )
    assert honest["gradients"] > 0
    assert flipped == {name: pytest.approx(total) for name, total in honest.items()}


def test_a_single_minded_owner_who_sends_noise_under_all_her_names_has_no_cost():
    owners = {
        "behaviours": [{"name": "false-names", "share": 1.0}],
        "families": ["step"],
        "cheats": [{"name": "nothing-but-noise", "share": 1.0}],
    }
    found = ledger_sums(market(owners=owners))
    assert found["earned"] > 0 == found["cost"] == found["lost"]


def test_who_cheats_in_turn_decides_by_what_the_sale_truly_costs_her():
    """At a level of 0.6 many honest owners find their favourite too little, and owners whose
    records lose nothing take every menu that their bids let them take."""
    check = {"name": CHECKS + "ExactNorm", "level": 0.6}
    accepted = {
        (name, looked): ledger_sums(
            market(cheats, check if looked else None, rounds=6, auction={"name": "seq-price"})
        )["gradients"]
        for name, cheats in (
            ("honest", ()),
            ("noise", [{"name": "nothing-but-noise"}]),
            ("rational", [{"name": "rational", "rehearsals": 2}]),
        )
        for looked in (False, True)
    }
    assert accepted["honest", True] < 0.8 * accepted["honest", False]
    for name in ("noise", "rational"):
        assert accepted[name, True] == accepted[name, False] == accepted["honest", False]


SLOW = {
    "bidders": 12,
    "gradient_deadline": 0.9,
    "delay": {"name": "uniform", "low": 0.1, "high": 0.6},
}


def test_messages_that_come_too_late_have_cost_their_owners_all_the_same(tmp_path):
    cheats = [{"name": "sign-flip", "share": 0.5}]
    run = fm.run(market(cheats, {"name": "variance"}, market=SLOW), tmp_path / "run").path
    late = [row for row in rows(run, "late") if row["message"] == "gradient"]
    values, borne = by_message(run, "decision", "sender"), defaultdict(float)
    for key in by_message(run, "gradient", "sender"):
        borne[key[1]] += values[key]["value"]
    ledger = fm.sql(run, "select * from ledger").to_pylist()
    assert late and sum(row["judged"] for row in ledger) < sum(row["gradients"] for row in ledger)
    for row in ledger:
        assert row["true_cost"] == pytest.approx(borne[row["owner"]])


def test_a_single_minded_owner_bears_her_cost_once_however_many_of_her_names_drop_out(tmp_path):
    owners = {
        "count": 12,
        "dropout": 0.4,
        "behaviours": [{"name": "false-names", "share": 1.0, "identities": 3}],
        "families": ["step"],
    }
    owners["cheats"] = [{"name": "sign-flip", "share": 1.0}]
    scenario = market(owners=owners, budget={"factor": 2.0}, rounds=6)
    run = fm.run(scenario, tmp_path / "run").path
    people = fm.read_owners(run).to_pylist()
    once = {p["owner"]: p["rate"] * p["data_size"] * p["privacy_budget"] for p in people}
    sold = {(row["round"], row["sender"] % 12) for row in rows(run, "gradient")}
    assert len(sold) < len(rows(run, "gradient")) and rows(run, "dropout")
    for row in fm.sql(run, "select * from ledger").to_pylist():
        times = sum(owner == row["owner"] for _, owner in sold)
        assert row["true_cost"] == pytest.approx(times * once[row["owner"]])


# -- the broker looks ------------------------------------------------------------------------------


def test_a_check_accuses_more_noise_and_no_honest_owner(tmp_path):
    cheats = [{"name": "more-noise", "share": 0.5}]
    check = {"name": CHECKS + "ExactNorm"}
    run = fm.run(market(cheats, check), tmp_path / "run").path
    cheating = by_message(run, "cheat", "sender")
    for key, verdict in by_message(run, "verdict", "receiver").items():
        assert verdict["accused"] == (key in cheating)
        assert verdict["paid_share"] == (0.0 if key in cheating else 1.0)


@pytest.mark.parametrize(
    "consequences",
    [
        (),
        ("no-payment",),
        ("partial-payment",),
        ("discard",),
        ("no-payment", "discard"),
        ("deposit",),
        ("partial-payment", "deposit", "exclusion", "reputation"),
    ],
)
def test_the_books_balance(consequences, tmp_path):
    check = suspicious(*consequences, **numbers(consequences))
    run = fm.run(market((), check), tmp_path / "run").path
    offers = by_message(run, "allocation", "receiver")
    verdicts = by_message(run, "verdict", "receiver")
    paid = {key: row["amount"] for key, row in by_message(run, "payment", "receiver").items()}
    assert verdicts and any(row["accused"] for row in verdicts.values())
    earned, lost = defaultdict(float), defaultdict(float)
    for key, verdict in verdicts.items():
        share = 1.0
        if verdict["accused"] and "no-payment" in consequences:
            share = 0.0
        elif verdict["accused"] and "partial-payment" in consequences:
            share = 0.01 / 0.05
        assert verdict["paid_share"] == pytest.approx(share)
        assert paid.get(key, 0.0) == pytest.approx(share * offers[key]["payment"])
        earned[key[1]] += paid.get(key, 0.0)
    forfeits = rows(run, "forfeit")
    for row in forfeits:
        key = (row["round"], row["sender"])
        if row["sender"] >= 0:
            assert verdicts[key]["accused"] and row["receiver"] == -1
            assert row["amount"] == pytest.approx(0.5 * offers[key]["payment"])
            lost[row["sender"]] += row["amount"]
    assert bool(forfeits) == ("deposit" in consequences)
    for number, spent in ((row["round"], row["spent"]) for row in rows(run, "round")):
        of_round = [paid[key] for key in verdicts if key[0] == number and key in paid]
        assert spent == pytest.approx(sum(of_round))
        assert paid.get((number, -1), 0.0) == spent  # what the buyer pays the broker
        deposits = [r["amount"] for r in forfeits if r["round"] == number and r["sender"] >= 0]
        handed_on = [r["amount"] for r in forfeits if r["round"] == number and r["sender"] == -1]
        assert sum(deposits) == pytest.approx(sum(handed_on))
    for row in fm.sql(run, "select * from ledger").to_pylist():
        assert row["earned"] == pytest.approx(earned[row["owner"]])
        assert row["forfeited"] == pytest.approx(lost[row["owner"]])


def test_a_discarded_message_has_no_weight_and_only_the_others_are_delivered(tmp_path):
    run = fm.run(market((), suspicious("discard")), tmp_path / "run").path
    weights = by_message(run, "weight", "receiver")
    for key, verdict in by_message(run, "verdict", "receiver").items():
        assert (key in weights) == (not verdict["accused"])


@pytest.mark.parametrize("pays", ["nothing", "auction", "budget"])
@pytest.mark.parametrize(
    "consequences",
    [("discard",), ("discard", "no-payment"), ("partial-payment", "deposit"), ("no-payment",)],
)
def test_only_kept_messages_contribute_and_accused_owners_leave_their_share_to_the_buyer(
    pays, consequences, tmp_path
):
    table = {"value": "validation-loss", "pays": pays, "records": 20}
    check = suspicious(*consequences, **numbers(consequences))
    run = fm.run(market((), check, contribution=table), tmp_path / "run").path
    shares, verdicts, offers, paid, lost = (
        by_message(run, *where)
        for where in (
            ("contribution", "receiver"),
            ("verdict", "receiver"),
            ("allocation", "receiver"),
            ("payment", "receiver"),
            ("forfeit", "sender"),
        )
    )
    accused = {key for key, row in verdicts.items() if row["accused"]}
    kept = verdicts.keys() - (accused if "discard" in consequences else set())
    assert accused and shares.keys() == kept
    for number, budget in ((row["round"], row["budget"]) for row in rows(run, "round")):
        own = {key for key in verdicts if key[0] == number}
        of_kept = [shares[key]["share"] for key in own & kept]
        assert not of_kept or sum(of_kept) == pytest.approx(1.0) or sum(of_kept) == 0.0
        money = sum(offers[key]["payment"] for key in own & kept) if pays == "auction" else budget
        for key in own:
            due = offers[key]["payment"]
            if pays != "nothing":
                due = shares[key]["share"] * money if key in kept else 0.0
            left = verdicts[key]["paid_share"]
            assert paid.get(key, {"amount": 0.0})["amount"] == pytest.approx(left * due)
            deposit = 0.5 * offers[key]["payment"] if key in accused else 0.0
            if "deposit" in consequences:
                assert lost.get(key, {"amount": 0.0})["amount"] == pytest.approx(deposit)


def test_a_round_in_which_all_are_discarded_is_invalid_and_costs_what_is_paid():
    check = {"name": __name__ + ":Everybody", "consequences": ["discard", "no-payment"]}
    for row in simulation.rounds_only(market((), check)):
        assert not row["valid"] and row["spent"] == 0 and row["delivered"] == 0
    check["consequences"] = ["discard"]
    found = simulation.rounds_only(market((), check))
    assert all(not row["valid"] for row in found) and sum(row["spent"] for row in found) > 0


def test_the_bids_of_excluded_owners_do_not_count(tmp_path):
    check = suspicious("exclusion", exclusion=2)
    run = fm.run(market((), check, rounds=8), tmp_path / "run").path
    until = defaultdict(int)
    offers = by_message(run, "allocation", "receiver")
    for number in range(8):
        for name in (row["sender"] for row in rows(run, "bid") if row["round"] == number):
            assert ((number, name) in offers) == (until[name] <= number)
        for key, verdict in by_message(run, "verdict", "receiver").items():
            if key[0] == number:
                wanted = number + 3 if verdict["accused"] else None
                assert verdict["excluded_until"] == wanted
                until[key[1]] = wanted or until[key[1]]
    assert max(until.values()) > 3


def test_a_reputation_makes_bids_look_dearer_and_still_pays_what_they_ask(tmp_path):
    check = suspicious("reputation", memory=0.5)
    run = fm.run(market((), check, rounds=8), tmp_path / "run").path
    kept = defaultdict(lambda: 1.0)
    for row in sorted(rows(run, "verdict"), key=lambda row: row["seq"]):
        name = row["receiver"]
        kept[name] = max(0.5 * kept[name] + 0.5 * (not row["accused"]), 0.1)
        assert row["reputation"] == pytest.approx(kept[name])
    declined = [row for row in rows(run, "decision") if row["reason"] == "below cost"]
    assert not declined and min(kept.values()) <= 0.25
    bids = BidBatch(np.ones((1, 2, 4)), np.ones((1, 2)), np.ones((1, 2)))
    assert weighed_by(bids, np.array([0.5, 1.0])).values[0, :, 0].tolist() == [2.0, 1.0]


def test_honest_owners_count_on_the_risk_of_a_false_accusation():
    """pay-as-bid pays exactly the cost of the truth: any risk makes it too little."""
    tables = {"auction": {"name": "pay-as-bid"}, "budget": {"factor": 1.0}}
    for consequences, sells in (([], True), (["discard"], True), (["no-payment"], False)):
        check = {"name": CHECKS + "ExactNorm", "consequences": consequences}
        found = simulation.rounds_only(market((), check, **tables))
        assert (sum(row["accepted"] for row in found) > 0) == sells
    check = {"name": CHECKS + "ExactNorm", "consequences": ["no-payment"], "level": 0.05}
    enough = {"behaviours": [{"name": "scale", "share": 1.0, "factor": 1.06}]}
    tables["budget"] = {"factor": 2.0}
    assert all(
        row["accepted"]
        for row in simulation.rounds_only(market((), check, owners=enough, **tables))
    )


def test_a_rational_cheat_is_honest_where_honesty_pays_and_noise_where_it_does():
    """Under PrivUnit one norm is right, so more noise is always seen, and noise alone never is."""
    found = {}
    for cheats in (["more-noise"], ["more-noise", "nothing-but-noise"]):
        scenario = market(
            [{"name": "rational", "cheats": cheats, "rehearsals": 4}],
            {"name": CHECKS + "ExactNorm"},
            rounds=2,
        )
        world = simulation.rounds_and_world(scenario)[1]
        found[len(cheats)] = world.ledger.lost.sum() / world.ledger.sold.sum()
    assert found == {1: pytest.approx(1.0), 2: 0.0}


class Everybody:
    """Accuses everybody."""

    name = "everybody"

    def scores(self, evidence):
        return np.ones(len(evidence.messages))

    def p_values(self, evidence):
        return np.zeros(len(evidence.messages))


@pytest.mark.parametrize("wrong", ["shape", "range", "nan"])
def test_a_check_that_breaks_its_contract_is_named(wrong, monkeypatch):
    given = {"shape": np.zeros(3), "range": np.full(12, 2.0), "nan": np.full(12, np.nan)}[wrong]
    monkeypatch.setattr(Everybody, "p_values", lambda self, evidence: given)
    check = {"name": __name__ + ":Everybody"}
    with pytest.raises(fm.errors.ContractError, match="check 'everybody'"):
        simulation.rounds_only(market((), check, budget={"factor": 2.0}))


# -- scenarios that cannot be ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"model": {"name": "none"}, "check": suspicious()}, "a check reads messages"),
        (
            {"model": {"name": "none"}, "owners": {"cheats": [{"name": "stale", "share": 1.0}]}},
            "owners cheat with messages",
        ),
        (
            {"check": suspicious("reputation"), "auction": {"name": "seq-price"}},
            "sells in turn by menus",
        ),
        (
            {"check": suspicious("reputation"), "market": {"counterfactual": True}},
            "do not know reputations",
        ),
        (
            {
                "market": {"counterfactual": True},
                "owners": {"cheats": [{"name": "stale", "share": 0.5}]},
            },
            "do not know what owners who cheat would do",
        ),
        ({"owners": {"cheats": [{"name": "stalle", "share": 0.5}]}}, "did you mean 'stale'"),
        ({"owners": {"cheats": [{"name": "stale"}]}}, "share"),
        ({"check": {"level": 0.1}}, "name"),
        ({"check": suspicious("no-paiment")}, "no-payment"),
        ({"check": suspicious("no-payment", "partial-payment")}, "give one of the two"),
        ({"check": suspicious("discard", "discard")}, "'discard' is listed 2 times"),
        ({"check": suspicious("discard", deposit=3.0)}, "check.deposit: is of the consequence"),
        ({"check": suspicious("deposit", exclusion=40)}, "leave exclusion out"),
        ({"check": suspicious(memory=0.5, least_reputation=0.2)}, "leave least_reputation out"),
        ({"check": {"name": "likelihood-ratio"}}, "check.reference: .* give reference"),
        ({"check": {"name": "consistency", "history": 0}}, "at least 1 round"),
        ({"check": {"name": "peer-cosine", "peers": -3}}, "greater than or equal to 1"),
        (
            {"owners": {"cheats": [{"name": "stale", "share": 0.5, "among": "with behaviour"}]}},
            "no owner has a behaviour",
        ),
        (
            {
                "owners": {
                    "behaviours": [{"name": "truthful", "share": 0.5}],
                    "cheats": [
                        {"name": name, "share": 0.75, "among": "with behaviour"}
                        for name in ("stale", "sign-flip")
                    ],
                }
            },
            "sum to 1.5, but the owners with behaviour are 1",
        ),
        (
            {
                "owners": {
                    "count": 20,
                    "cheats": [{"name": "targeted-poison", "share": 0.5, "source": 9}],
                },
                "market": {"bidders": 10},
            },
            "there is no class 9; the classes of this data set are 0 to 2",
        ),
        (
            {"owners": {"cheats": [{"name": "rational", "share": 0.5, "cheats": ["label-flip"]}]}},
            "cannot choose 'label-flip'",
        ),
    ],
)
def test_a_scenario_with_cheats_or_checks_that_cannot_be_is_refused(tables, message):
    with pytest.raises(ScenarioError, match=message):
        build_scenario({"data": SMALL} | tables)


def test_keys_at_their_defaults_and_stored_scenarios_are_no_problem(tmp_path):
    check = suspicious("discard", deposit=1.0, exclusion=10, memory=0.3, least_reputation=0.1)
    scenario = market([{"name": "targeted-poison", "source": 2}], check, rounds=1)
    assert fm.run(scenario, tmp_path / "run").scenario == scenario
    for among in ("all", "with behaviour", "without behaviour"):
        one = {"name": "stale", "share": 0.7, "among": among}
        lies = [{"name": "truthful", "share": 0.5}]
        market(owners={"behaviours": lies, "cheats": [one]})


def test_shares_of_cheats_are_of_one_whole():
    with pytest.raises(ScenarioError, match=r"sum to 1\.2"):
        market(owners={"cheats": [{"name": n, "share": 0.6} for n in ("stale", "sign-flip")]})


def test_perturbations_of_the_tests_have_one_norm():
    policy = perturbation_named("priv-unit", length="unit")
    made = policy.release(policy.prepare(np.eye(8)), np.full(8, 2.0), np.random.default_rng(0))
    assert np.ptp(np.linalg.norm(made, axis=1)) < 1e-9


def test_a_summary_and_the_page_say_what_each_cheat_kept(every):
    from flmarket_sim.eventlog.cheat_earnings import cheat_earnings
    from flmarket_sim.eventlog.summary import summarise
    from flmarket_sim.report.html.run_cheats import cheats as on_a_page
    from flmarket_sim.report.run_summary import in_brief

    found = cheat_earnings(every.path)
    ledger = fm.sql(every.path, "select * from ledger").to_pylist()
    for key, column in (
        ("paid", "earned"),
        ("cost", "true_cost"),
        ("sold", "privacy_sold"),
        ("lost", "privacy_lost"),
    ):
        total = sum(row[column] for row in ledger)
        assert sum(of[key] for of in found.values()) == pytest.approx(total), key
    assert set(found) == set(EVERY)
    summary = summarise(every.path)
    assert summary["cheats"] == found
    assert "Owners kept above their true cost, a sale: " in str(in_brief(every.path))
    charts, tables = on_a_page(every.path, every.info["scenario"])
    assert len(charts) == 1 and [row[0] for row in tables[0].rows] == list(found)


def test_headlines_say_what_messages_truly_cost_and_what_records_truly_lost(tmp_path):
    """The ledger counts by owner what the headlines count; late messages and deposits are in it."""
    from flmarket_sim.report.html.from_run import read as on_a_page
    from flmarket_sim.report.run_summary import in_brief
    from flmarket_sim.tables.cells import number

    cheats = [{"name": name, "share": 0.3} for name in ("nothing-but-noise", "more-noise")]
    check = suspicious("no-payment", "deposit")
    run = fm.run(market(cheats, check, rounds=6, market=SLOW), tmp_path / "run").path
    ledger = fm.sql(run, "select * from ledger").to_pylist()
    sellers = [row for row in ledger if row["privacy_sold"] > 0]
    kept = sum(row["earned"] - row["forfeited"] - row["true_cost"] for row in ledger)
    told = " ".join(in_brief(run).sentences)
    deposits = number(sum(row["forfeited"] for row in ledger))
    assert f"owners kept {number(kept)} more than their messages truly cost them" in told
    assert f", after {deposits} of lost deposits" in told
    sold, lost = (
        number(sum(row[key] for row in sellers) / len(sellers))
        for key in ("privacy_sold", "privacy_lost")
    )
    assert f"they sold e = {sold} of privacy on average" in told and sold != lost
    assert f"their records truly lost e = {lost} on average" in told
    cards = dict(on_a_page(run).cards)
    for name, total in (
        ("owners' surplus", kept),
        ("privacy truly lost", sum(row["privacy_lost"] for row in ledger)),
    ):
        assert float(cards[name].replace(",", "")) == pytest.approx(total, rel=0.01)


def test_what_a_round_was_worth_is_what_its_sales_truly_cost(every):
    costs = defaultdict(float)
    weighed = by_message(every.path, "weight", "receiver")
    for key, row in by_message(every.path, "cheat", "sender").items():
        costs[key[0]] += row["true_value"] if key in weighed else 0.0
    for row in rows(every.path, "round"):
        assert row["value_sold"] == pytest.approx(costs[row["round"]])


def test_a_market_with_cheats_and_a_check_resumes_to_the_same_bytes(tmp_path, monkeypatch):
    """The memory of cheats, reputations, exclusions and past messages is in the checkpoint."""
    from flmarket_sim.market import checkpoint

    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    cheats = [
        {"name": "stale"},
        {"name": "public-direction"},
        {"name": "rational", "rehearsals": 2},
    ]
    check = {
        "name": "consistency",
        "consequences": ["partial-payment", "deposit", "exclusion", "reputation"],
        "exclusion": 2,
        "reference": 40,
    }
    scenario = market(cheats, check, rounds=6)
    whole = fm.run(scenario, tmp_path / "whole")

    def stop(done, total):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fm.run(scenario, tmp_path / "stopped", progress=stop)
    resumed = fm.resume(tmp_path / "stopped")
    assert resumed.info["log"]["sha256"] == whole.info["log"]["sha256"]
    first, second = (fm.sql(run.path, "select * from ledger") for run in (whole, resumed))
    assert first.equals(second)


# -- counterfactuals, and what owners with behaviours kept -----------------------------------------

TRUE_REPORT = {"name": "scale", "share": 1.0, "factor": 1.0}  # a behaviour that tells the truth


@pytest.mark.parametrize("auction", ["all-in-critical", "seq-price"])
@pytest.mark.parametrize(
    "follows",
    [
        {"consequences": ["no-payment"]},
        {"consequences": ["partial-payment"]},
        {"consequences": ["deposit"], "deposit": 3.0},
    ],
)
def test_a_report_that_is_the_truth_is_worth_what_the_truth_is_worth(tmp_path, auction, follows):
    scenario = market(
        check={"name": "variance", "level": 0.2, **follows},
        owners={"behaviours": [TRUE_REPORT]},
        market={"bidders": 12, "counterfactual": True},
        auction={"name": auction},
    )
    run = fm.run(scenario, tmp_path / "run").path
    found = rows(run, "counterfactual")
    counted_on = (
        1
        - 0.2 * {"no-payment": 1, "partial-payment": 0.5, "deposit": 3}[follows["consequences"][0]]
    )
    values = by_message(run, "decision", "sender")
    offers = by_message(run, "allocation", "receiver")
    assert any(row["utility"] > 0 for row in found)
    for row in found:
        assert row["utility"] == pytest.approx(row["truthful_utility"], abs=1e-9)
        if auction == "all-in-critical":  # elsewhere a declined menu leaves no offer
            key = row["round"], row["sender"]
            sold, cost = offers[key], values[key]["value"] if key in values else 0.0
            counts = max(counted_on * sold["payment"] - cost, 0.0)
            assert row["utility"] == pytest.approx(counts, abs=1e-9)


def test_what_owners_with_a_behaviour_kept_is_what_the_ledger_says(tmp_path):
    """Cheats, lost deposits, accused messages that are not paid, and late ones are all in it."""
    from flmarket_sim.eventlog.behaviour_earnings import earnings
    from flmarket_sim.eventlog.cheat_earnings import cheat_earnings

    scenario = market(
        [{"name": name, "share": 0.3} for name in ("nothing-but-noise", "more-noise")],
        suspicious("no-payment", "deposit", deposit=0.5),
        rounds=6,
        owners={"behaviours": [{"name": "scale", "share": 0.5, "factor": 1.2}]},
        market=SLOW,
    )
    run = fm.run(scenario, tmp_path / "run").path
    assert rows(run, "late") and rows(run, "forfeit")
    found, by_cheat = earnings(run), cheat_earnings(run)
    people = {row["owner"]: row["behaviour"] for row in fm.read_owners(run).to_pylist()}
    ledger = fm.sql(run, "select * from ledger").to_pylist()
    for name, told in found.items():
        kept = sum(
            row["earned"] - row["forfeited"] - row["true_cost"]
            for row in ledger
            if (people[row["owner"]] or "no behaviour") == name
        )
        assert told["surplus_per_bid"] * told["bids"] == pytest.approx(kept), name
        assert told["surplus_per_sale"] * told["sales"] == pytest.approx(kept), name
    assert sum(of["sales"] for of in found.values()) == sum(of["sales"] for of in by_cheat.values())


def test_pay_as_bid_pays_a_cheat_above_her_true_cost(tmp_path):
    scenario = market(
        [{"name": "nothing-but-noise"}],
        owners={"behaviours": [{"name": "scale", "share": 1.0, "factor": 0.5}]},
        auction={"name": "pay-as-bid"},
    )
    run = fm.run(scenario, tmp_path / "run")
    told = run.summary()["behaviours"]["scale"]
    paid = sum(row["amount"] for row in rows(run.path, "payment") if row["receiver"] >= 0)
    assert paid > 0 and told["surplus_per_bid"] * told["bids"] == pytest.approx(paid)
