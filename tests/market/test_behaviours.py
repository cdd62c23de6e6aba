"""Owners who lie in a market: who they are, what the log says of them, and what lying does to money
and privacy."""

from collections import defaultdict

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.auctions import Outcome
from flmarket_sim.errors import ContractError
from flmarket_sim.eventlog.summary import summarise
from flmarket_sim.market import cohort_gradients
from flmarket_sim.market.ledger import JointAccount, Ledger
from flmarket_sim.randomness import Purpose, Streams
from flmarket_sim.report.run_summary import in_brief
from flmarket_sim.strategy.behaviours import BehaviourReports, Transfers

HERE = "tests.market.test_behaviours:"
EVERY = {
    "truthful": {},
    "scale": {"factor": 1.5},
    "shade": {"privacy_budget": 0.6, "data_size": 0.5},
    "pretend": {"family": "sqrt"},
    "best-response": {},
    "exp3": {},
    "bandit": {"method": "ucb"},
    "coalition": {"size": 3},
    "false-names": {"identities": 3},
}


def rows(run, kind, **where):
    found = fm.read_events(run, kind).to_pylist()
    return [row for row in found if all(row[key] == value for key, value in where.items())]


def owners_with(*behaviours, **other):
    return {
        "count": 40,
        "behaviours": [{"share": 1.0 / len(behaviours)} | b for b in behaviours],
    } | other


# -- mechanisms and behaviours for these tests -----------------------------------------------------


class Becker:
    """A random price for each owner, who sells all if she asks for no more: the truth pays best
    (Becker, DeGroot, Marschak)."""

    name = "becker"
    guarantees = {"truthful": "any", "individually_rational": "any", "budget_feasible": "none"}

    def decide(self, bids, budget, rng):
        price = rng.uniform(0.0, 4.0, bids.shape) * bids.data_size * bids.privacy_budget
        sells = bids.full_value <= price
        return Outcome(np.where(sells, bids.privacy_budget, 0.0), np.where(sells, price, 0.0))


class Wrong:
    """Breaks its contract in the way it is told."""

    name = "wrong"

    def __init__(self, how: str) -> None:
        self.how = how

    def report(self, view):
        values, budget, size = view.values.copy(), view.privacy_budget.copy(), view.data_size.copy()
        if self.how == "budget":
            budget *= 2
        elif self.how == "size":
            size += 1
        elif self.how == "half a record":
            size -= 0.5
        elif self.how == "falling":
            values = values[:, ::-1]
        elif self.how == "shape":
            values = values[:, 1:]
        elif self.how == "infinite":
            values[:] = np.inf
        elif self.how == "crash":
            raise KeyError("lost")
        elif self.how == "nothing":
            return None
        elif self.how == "someone missing":
            return BehaviourReports(values[1:], budget[1:], size[1:], of=np.arange(1, len(size)))
        elif self.how == "same records twice":
            twice = np.repeat(np.arange(len(size)), 2)
            return BehaviourReports(values[twice], budget[twice], size[twice], of=twice)
        return BehaviourReports(values, budget, size)

    def share(self, feedback):
        return Transfers([0], [10**6], [5.0])


# -- who -------------------------------------------------------------------------------------------


def liars(run, label):
    return {row["owner"] for row in fm.read_owners(run).to_pylist() if row["behaviour"] == label}


def test_a_larger_share_contains_the_owners_of_a_smaller_one(market):
    def run(share, name="scale", **options):
        return market(rounds=1, owners=owners_with({"name": name, "share": share, **options}))

    few, many = run(0.25, factor=2.0), run(0.5, factor=2.0)
    assert len(liars(few, "scale")) == 10 and len(liars(many, "scale")) == 20
    assert liars(few, "scale") < liars(many, "scale")
    assert liars(run(0.5, "shade", data_size=0.5), "shade") == liars(
        many, "scale"
    )  # paired: other lies, same owners


def test_behaviours_share_the_owners_without_overlap_and_keep_their_labels(market):
    run = market(
        rounds=1,
        owners=owners_with(
            {"name": "scale", "factor": 2.0, "share": 0.25},
            {"name": "scale", "factor": 0.5, "share": 0.25},
            {"name": "shade", "share": 0.5},
        ),
    )
    counts = defaultdict(int)
    for row in fm.read_owners(run).to_pylist():
        counts[row["behaviour"]] += 1
    assert counts == {"scale": 10, "scale-2": 10, "shade": 20}


def test_nothing_changes_before_a_behaviour_begins(market):
    honest = market(rounds=4)
    later = market(
        rounds=4,
        owners={"behaviours": [{"name": "scale", "share": 1.0, "factor": 3.0, "from_round": 2}]},
    )
    for kind in ("bid", "allocation", "payment", "round"):
        before = [[row for row in rows(run, kind) if row["round"] < 2] for run in (honest, later)]
        assert before[0] == before[1]
    assert {row["behaviour"] for row in rows(later, "bid")} == {None, "scale"}
    assert all((row["round"] >= 2) == (row["behaviour"] == "scale") for row in rows(later, "bid"))


def test_owners_who_are_named_truthful_change_nothing_but_their_label(market):
    plain = {"rounds": 3, "market": {"delay": {"name": "uniform", "low": 0.0, "high": 1.0}}}
    runs = [
        market(**plain),
        market(**plain, owners={"behaviours": [{"name": "truthful", "share": 0.5}]}),
    ]
    for kind in (
        "announcement",
        "allocation",
        "decision",
        "gradient",
        "weight",
        "payment",
        "round",
    ):
        assert rows(runs[0], kind) == rows(runs[1], kind)
    told = [
        [
            (r["sender"], r["rate"], r["value"], r["privacy_budget"], r["data_size"])
            for r in rows(run, "bid")
        ]
        for run in runs
    ]
    assert told[0] == told[1]


# -- what the log says -----------------------------------------------------------------------------


def test_an_owner_who_scales_is_told_so_in_the_log(market):
    run = market(owners=owners_with({"name": "scale", "share": 0.5, "factor": 1.5}))
    truth = {row["owner"]: row for row in fm.read_owners(run).to_pylist()}
    bids = rows(run, "bid")
    assert {bid["behaviour"] for bid in bids} == {None, "scale"}
    for bid in bids:
        mine = truth[bid["sender"]]
        assert bid["behaviour"] == mine["behaviour"]
        if bid["behaviour"] is None:
            assert (
                bid["true_value"] is None and bid["rate"] == mine["rate"] and bid["values"] is None
            )
        else:
            assert (
                bid["value"] == pytest.approx(1.5 * bid["true_value"])
                and bid["values"][-1] == bid["value"]
            )
            assert (
                bid["rate"] == 1.5 * mine["rate"]
                and bid["true_data_size"] == mine["data_size"] == bid["data_size"]
            )


def test_who_shades_offers_less_and_judges_offers_by_what_she_offers(market):
    run = market(
        owners=owners_with({"name": "shade", "privacy_budget": 0.5, "data_size": 0.25}),
        model={"name": "logistic"},
    )
    truth = {row["owner"]: row for row in fm.read_owners(run).to_pylist()}
    for bid in rows(run, "bid"):
        mine = truth[bid["sender"]]
        assert (
            bid["privacy_budget"]
            == 0.5 * mine["privacy_budget"]
            == 0.5 * bid["true_privacy_budget"]
        )
        assert bid["data_size"] == max(1, mine["data_size"] // 4)
    sent = {(r["round"], r["sender"]): r["records"] for r in rows(run, "gradient")}
    offered = {(r["round"], r["sender"]): r["data_size"] for r in rows(run, "bid")}
    assert sent and all(offered[key] == records for key, records in sent.items())


def test_the_bound_of_data_has_true_sizes_and_is_the_reported_one_where_nobody_lies(market):
    lying = rows(
        market(owners=owners_with({"name": "shade", "share": 0.5, "data_size": 0.1}), rounds=10),
        "round",
    )
    assert all(row["bound_of_data"] != row["error_bound"] for row in lying if row["valid"])
    assert all(row["bound_of_data"] == row["error_bound"] for row in rows(market(), "round"))
    run = market(
        owners=owners_with({"name": "shade", "share": 0.5, "data_size": 0.1}),
        rounds=2,
        aggregation={"name": "uniform", "error": "coordinate"},
    )
    for row in rows(run, "delivery"):
        number = row["round"]
        weights = {r["receiver"]: r for r in rows(run, "weight", round=number)}
        bids = rows(run, "bid", round=number)
        size = np.array([[bid["true_data_size"] or bid["data_size"] for bid in bids]])
        weight, loss = (
            np.array([[weights[b["sender"]][key] if b["sender"] in weights else 0.0 for b in bids]])
            for key in ("weight", "privacy_loss")
        )
        assert row["bound_of_data"] == pytest.approx(
            fm.aggregation.error_bound(weight, loss, size)[0]
        )


@pytest.mark.parametrize(
    "auction", ["pay-as-bid", "all-in-critical", "tests.support.mechanisms:Lottery"]
)
def test_the_counterfactual_is_a_rerun_of_the_auction_with_the_truth(market, auction):
    run = market(
        owners=owners_with({"name": "scale", "share": 0.5, "factor": 1.4}),
        auction={"name": auction},
        market={"counterfactual": True},
        rounds=3,
    )
    truth = {row["owner"]: row for row in fm.read_owners(run).to_pylist()}

    def true_type(owner):
        return fm.Profiles(
            *([[truth[owner][key]]] for key in ("family", "rate", "privacy_budget", "data_size"))
        )

    mechanism = fm.auctions.create(auction)
    assert rows(run, "counterfactual")
    for number in range(3):
        bids = rows(run, "bid", round=number)
        budget = np.array([rows(run, "announcement", round=number)[0]["budget"]])
        values = [b["values"] or true_type(b["sender"]).bids(8).values[0, 0].tolist() for b in bids]
        offers = {row["receiver"]: row for row in rows(run, "allocation", round=number)}
        found = {row["sender"]: row for row in rows(run, "counterfactual", round=number)}
        assert found.keys() == {b["sender"] for b in bids if b["behaviour"]}
        for place, bid in enumerate(bids):
            if bid["behaviour"]:
                mine = true_type(bid["sender"])
                told = [*values[:place], mine.bids(8).values[0, 0].tolist(), *values[place + 1 :]]
                batch = fm.BidBatch(
                    [told], [[b["privacy_budget"] for b in bids]], [[b["data_size"] for b in bids]]
                )
                outcome = mechanism.decide(
                    batch, budget, Streams(0).generator(Purpose.AUCTION, 0, number)
                )
                row = found[bid["sender"]]
                loss, payment = outcome.privacy_loss[0, place], outcome.payment[0, place]
                assert (row["truthful_privacy_loss"], row["truthful_payment"]) == pytest.approx(
                    (loss, payment)
                )
                assert row["truthful_utility"] == pytest.approx(
                    max(mine.utility([[loss]], [[payment]])[0, 0], 0.0)
                )
                got = offers[bid["sender"]]
                utility = mine.utility(
                    np.array([[got["privacy_loss"]]]), np.array([[got["payment"]]])
                )[0, 0]
                assert row["utility"] == pytest.approx(max(utility, 0.0), abs=1e-9)


def test_the_summary_says_what_liars_earned(market):
    run = market(
        owners=owners_with({"name": "scale", "share": 0.5, "factor": 1.4}),
        auction={"name": "pay-as-bid"},
        market={"counterfactual": True},
    )
    found = summarise(run)["behaviours"]
    assert found["scale"]["owners"] == 20 and found["scale"]["surplus_per_bid"] > 1.0
    assert found["no behaviour"]["surplus_per_bid"] == pytest.approx(0.0, abs=1e-9)
    assert found["scale"]["offered_per_bid_by_truth"] == pytest.approx(0.0, abs=1e-9)
    assert any("20 scale" in said for said in in_brief(run).sentences)
    assert summarise(market())["behaviours"] == {}


# -- what it pays ----------------------------------------------------------------------------------


def late_factors(run, since):
    """What learners asked, as factors of the truth, in the rounds from `since` on."""
    bids = [bid for bid in rows(run, "bid") if bid["round"] >= since]
    return np.array([bid["value"] / bid["true_value"] for bid in bids])


LEARNERS = [
    {"name": "exp3", "learning_rate": 0.15},
    {"name": "bandit"},
    {"name": "bandit", "method": "ucb", "width": 0.2},
]


@pytest.mark.parametrize(
    "learner", LEARNERS, ids=lambda learner: learner.get("method", learner["name"])
)
def test_learners_find_the_truth_where_only_the_truth_pays(market, learner):
    run = market(
        rounds=400,
        owners=owners_with(
            learner | {"factors": [0.2, 1.0, 5.0], "privacy_budget": [1.0]},
            count=10, families=["linear"], rate=[0.9, 1.1], accept="always",
        ),
        auction={"name": HERE + "Becker"},
        budget={"factor": 8.0},
    )  # fmt: skip
    at_first, at_last = (np.isclose(late_factors(run, since), 1.0) for since in (0, 300))
    assert at_first[:100].mean() < 0.55 and at_last.mean() > 0.75


@pytest.mark.parametrize(
    "learner", LEARNERS, ids=lambda learner: learner.get("method", learner["name"])
)
def test_learners_learn_to_lie_where_that_pays(market, learner):
    run = market(
        rounds=300,
        owners=owners_with(
            learner | {"factors": [0.5, 1.0, 2.0], "privacy_budget": [1.0]}, count=10
        ),
        auction={"name": "pay-as-bid"},
        budget={"factor": 10.0},
    )
    assert np.isclose(late_factors(run, 250), 2.0).mean() > 0.7


@pytest.mark.parametrize("knows", ["others", "prior"])
def test_a_best_response_earns_more_than_the_truth_where_lying_pays(market, knows):
    run = market(
        owners=owners_with({"name": "best-response", "knows": knows, "share": 0.2}),
        auction={"name": "pay-as-bid"},
        market={"counterfactual": True},
        rounds=10,
        budget={"factor": 0.7},
    )
    found = rows(run, "counterfactual")
    assert np.mean([row["utility"] for row in found]) > 1.0 + np.mean(
        [row["truthful_utility"] for row in found]
    )


def test_nobody_gains_by_a_best_response_where_the_truth_is_best(market):
    run = market(
        owners=owners_with({"name": "best-response", "share": 0.2}, families=["step"]),
        market={"counterfactual": True},
        rounds=5,
    )
    assert all(
        row["utility"] == pytest.approx(row["truthful_utility"])
        for row in rows(run, "counterfactual")
    )


def test_a_coalition_shares_what_it_gains_and_the_books_balance(market):
    run = market(
        owners=owners_with({"name": "coalition", "size": 3, "share": 0.5}),
        auction={"name": "pay-as-bid"},
        rounds=6,
        budget={"factor": 0.8},
    )
    moved = rows(run, "transfer")
    assert moved and all(row["amount"] > 0 and row["sender"] != row["receiver"] for row in moved)
    members = liars(run, "coalition")
    assert {row["sender"] for row in moved} | {row["receiver"] for row in moved} <= members
    net = defaultdict(float)
    for row in moved:
        net[row["sender"]] -= row["amount"]
        net[row["receiver"]] += row["amount"]
    ledger = {row["owner"]: row for row in fm.read_ledger(run).to_pylist()}
    assert sum(net.values()) == pytest.approx(0.0, abs=1e-6)
    assert all(
        ledger[owner]["transferred"] == pytest.approx(amount) for owner, amount in net.items()
    )
    paid = sum(row["amount"] for row in rows(run, "payment", receiver=-1))
    assert paid == pytest.approx(sum(row["earned"] for row in ledger.values()))


def test_members_of_a_coalition_gain_alike(market):
    """In an auction that pays the truth nothing above cost, each member ends with the same share
    of the whole gain."""
    run = market(
        owners=owners_with({"name": "coalition", "size": 3}),
        auction={"name": "pay-as-bid"}, rounds=1,
        market={"bidders": 3}, budget={"factor": 0.8},
    )  # fmt: skip
    gained = {row["sender"]: 0.0 for row in rows(run, "bid")}
    cost = {row["sender"]: row["value"] for row in rows(run, "decision", accepted=True)}
    for row in rows(run, "payment", sender=-1):
        gained[row["receiver"]] += row["amount"] - cost[row["receiver"]]
    before = sorted(gained.values())
    for row in rows(run, "transfer"):
        gained[row["sender"]] -= row["amount"]
        gained[row["receiver"]] += row["amount"]
    assert before[0] < before[-1] - 1.0
    assert list(gained.values()) == pytest.approx([sum(before) / 3] * 3)


# -- false names -----------------------------------------------------------------------------------


def test_false_names_split_an_owners_records_and_the_log_knows_the_person(market, monkeypatch):
    computed = []

    def recording(people, owners, sizes, skipped=None):
        found = original(people, owners, sizes, skipped)
        computed.append(found)
        for row, owner in zip(np.split(found, np.cumsum(sizes)[:-1]), owners, strict=True):
            assert np.isin(
                row, people.rows[people.offsets[owner] : people.offsets[owner + 1]]
            ).all()
        return found

    original = cohort_gradients.records
    monkeypatch.setattr(cohort_gradients, "records", recording)
    run = market(
        owners=owners_with({"name": "false-names", "identities": 3, "share": 0.5, "disguise": 0.0}),
        model={"name": "logistic"},
    )
    truth = {row["owner"]: row for row in fm.read_owners(run).to_pylist()}
    parts = defaultdict(list)
    for bid in rows(run, "bid"):
        person = bid["sender"] if bid["person"] is None else bid["person"]
        assert person == bid["sender"] % 40 and (bid["person"] is None) == (bid["sender"] < 40)
        parts[bid["round"], person].append(bid)
    assert {len(names) for names in parts.values()} == {1, 3}
    for (_, person), bids in parts.items():
        assert sum(bid["data_size"] for bid in bids) == truth[person]["data_size"]
        assert sum(bid["true_value"] or bid["value"] for bid in bids) == pytest.approx(
            sum(bid["value"] for bid in bids)
        )
    assert computed and all(
        len(np.unique(found)) == len(found) for found in computed
    )  # no record is used twice
    for row in rows(run, "round"):
        assert row["asked"] == len(rows(run, "bid", round=row["round"]))


def test_a_disguise_changes_little_of_what_names_earn(market):
    earned = {}
    for disguise in (0.0, 0.02):
        run = market(
            owners=owners_with({"name": "false-names", "share": 0.5, "disguise": disguise}),
            market={"counterfactual": True},
            rounds=12,
        )
        earned[disguise] = sum(row["utility"] for row in rows(run, "counterfactual"))
    assert earned[0.02] != earned[0.0] > 0
    assert earned[0.02] == pytest.approx(earned[0.0], rel=0.02)


def test_a_false_named_owner_pays_with_the_largest_loss_of_a_round(market):
    run = market(
        owners=owners_with({"name": "false-names", "share": 1.0}, lifetime_budget=3.0, dropout=0.2),
        rounds=12,
        budget={"factor": 1.5},
        market={"gradient_deadline": 5.0},
    )
    sold, earned, gradients = defaultdict(dict), defaultdict(float), defaultdict(int)
    for row in rows(run, "gradient"):
        per_round, person = sold[row["sender"] % 40], row["sender"] % 40
        per_round[row["round"]] = max(per_round.get(row["round"], 0.0), row["privacy_loss"])
        gradients[person] += 1
    for row in rows(run, "payment", sender=-1):
        earned[row["receiver"] % 40] += row["amount"]
    for row in fm.read_ledger(run).to_pylist():
        assert row["privacy_sold"] == pytest.approx(sum(sold[row["owner"]].values()))
        assert (
            row["privacy_sold"] <= 3.0 * (1 + 1e-9) and row["gradients"] == gradients[row["owner"]]
        )
        assert row["earned"] == pytest.approx(earned[row["owner"]])
    assert max(row["privacy_sold"] for row in fm.read_ledger(run).to_pylist()) > 2.9


def test_a_step_owner_pays_her_cost_once_for_all_her_names(market):
    run = market(
        owners=owners_with({"name": "false-names"}, families=["step"]),
        rounds=4,
        budget={"factor": 0.6},
    )
    truth = {row["owner"]: row for row in fm.read_owners(run).to_pylist()}
    costs = defaultdict(list)
    for row in rows(run, "decision"):
        costs[row["round"], row["sender"] % 40].append(row)
    assert {len(found) for found in costs.values()} >= {2}
    for (_, person), found in costs.items():
        mine = truth[person]
        cost = mine["rate"] * mine["data_size"] * mine["privacy_budget"]
        assert sum(row["value"] for row in found) == pytest.approx(cost)
        assert len({row["accepted"] for row in found}) == 1


def test_promises_under_several_names_cost_the_largest():
    ledger = Ledger(1, lifetime_budget=1.0)
    account = JointAccount(ledger, 0)
    assert account.reserve(0, 0.4) and account.reserve(10, 0.9) and not account.reserve(20, 1.1)
    assert ledger.reserved[0] == pytest.approx(0.9)
    account.release(10, 0.9)
    assert ledger.reserved[0] == pytest.approx(0.4)
    assert account.reserve(10, 0.7)
    account.spend(0, 0.4)
    assert ledger.remaining(np.array([0]))[0] == pytest.approx(0.3)
    account.spend(10, 0.7)
    assert ledger.reserved[0] == pytest.approx(0.0)
    assert ledger.remaining(np.array([0]))[0] == pytest.approx(0.3) and ledger.gradients[0] == 2


# -- every behaviour -------------------------------------------------------------------------------

HARD = {
    "rounds": 8,
    "data": {"name": "synthetic", "records": 4000, "features": 3, "classes": 2},
    "model": {"name": "logistic"},
    "market": {
        "delay": {"name": "lognormal", "median": 0.5, "sigma": 1.2},
        "bid_deadline": 2.0,
        "decision_deadline": 2.0,
        "gradient_deadline": 5.0,
        "counterfactual": True,
    },
    "buyers": [{"name": "a"}, {"name": "b", "auction": {"name": "posted-price", "price": 1.5}}],
    "auction": {"name": "pay-as-bid"},
}
UNRELIABLE = {
    "availability": 0.8, "dropout": 0.15, "lifetime_budget": 3.0,
    "records_per_second": [5.0, 100.0],
    "families": ["linear", "sqrt", "step"],
}  # fmt: skip


@pytest.mark.parametrize("name", EVERY)
def test_what_a_market_promises_holds_with_any_behaviour(market, name):
    run = market(
        **HARD,
        owners=owners_with(
            {"name": name, "share": 0.6, "from_round": 1, **EVERY[name]}, **UNRELIABLE
        ),
    )

    def keyed(kind, who):
        return {(r["buyer"], r["round"], r[who]): r for r in rows(run, kind) if r[who] >= 0}

    truth = {row["owner"]: row for row in fm.read_owners(run).to_pylist()}
    bids, offers, decisions = (
        keyed("bid", "sender"),
        keyed("allocation", "receiver"),
        keyed("decision", "sender"),
    )
    gradients, payments = keyed("gradient", "sender"), keyed("payment", "receiver")
    assert {bid["behaviour"] for bid in bids.values()} == {None, name}
    for key, bid in bids.items():
        mine = truth[key[2] % 40]
        assert (
            bid["privacy_budget"] <= mine["privacy_budget"]
            and 1 <= bid["data_size"] <= mine["data_size"]
        )
        if key in offers:
            assert offers[key]["privacy_loss"] <= bid["privacy_budget"] * (1 + 1e-9)
    for key, gradient in gradients.items():
        assert decisions[key]["accepted"] and gradient["records"] == bids[key]["data_size"]
    for key, payment in payments.items():
        assert key in gradients and payment["amount"] == offers[key]["payment"]
    for row in rows(run, "round"):
        mine = [
            p["amount"] for key, p in payments.items() if key[:2] == (row["buyer"], row["round"])
        ]
        assert row["spent"] == pytest.approx(sum(mine)) and row["spent"] <= row["budget"] * (
            1 + 1e-9
        )
        assert row["delivered"] == len(mine)
    ledger = fm.read_ledger(run).to_pylist()
    assert max(row["privacy_sold"] for row in ledger) <= 3.0 * (1 + 1e-9)
    assert sum(row["earned"] for row in ledger) == pytest.approx(
        sum(p["amount"] for p in payments.values())
    )
    assert sum(row["transferred"] for row in ledger) == pytest.approx(0.0, abs=1e-6)
    sold = defaultdict(float)
    for (buyer, number, sender), row in gradients.items():
        sold[buyer, number, sender % 40] = max(
            sold[buyer, number, sender % 40], row["privacy_loss"]
        )
    for row in ledger:
        assert row["privacy_sold"] == pytest.approx(
            sum(loss for key, loss in sold.items() if key[2] == row["owner"])
        )


def test_the_same_seed_gives_the_same_log_with_all_behaviours_at_once(market):
    owners = owners_with(
        *({"name": name, **options} for name, options in EVERY.items()), **UNRELIABLE
    )
    hashes = [
        fm.read_run(market(**HARD, owners=owners, seed=seed))["log"]["sha256"] for seed in (0, 0, 1)
    ]
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_market_in_which_everybody_is_away_or_spent_asks_no_behaviour(market):
    run = market(owners=owners_with({"name": HERE + "Wrong", "how": "crash"}, availability=0.0))
    assert not rows(run, "bid")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("budget", "privacy budget must be above 0 and at most the true one"),
        ("size", "together at most the true one"),
        ("half a record", "must be whole"),
        ("falling", "must not fall"),
        ("shape", r"values must have shape \(10, 8\), got \(10, 7\)"),
        ("infinite", "must be finite"),
        ("crash", "KeyError: 'lost'"),
        ("nothing", "not a BehaviourReports"),
        ("someone missing", "every one of its 10 owners must report"),
        ("same records twice", "together at most the true one"),
        ("fine", "transfers must be between its own owners"),
    ],
)
def test_a_behaviour_that_breaks_its_contract_is_named(market, how, message):
    with pytest.raises(ContractError, match=f"behaviour 'wrong'.*{message}"):
        market(owners=owners_with({"name": HERE + "Wrong", "how": how}))
