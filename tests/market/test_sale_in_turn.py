"""An auction that asks in turn: every owner sees her menu, answers, and only then the next one is
asked."""

from itertools import pairwise

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.perturbation.scenario_error import scenario_error
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.testing.trial_valuations import TRIAL_VALUATIONS

SEQ = {"name": "seq-price"}


def sold(run):
    return fm.sql(
        run,
        "select round, receiver as owner, privacy_loss, payment from allocation "
        "order by round, owner",
    ).to_pylist()


def test_the_next_owner_is_asked_when_the_one_before_has_answered(market):
    run = market(auction=SEQ, market={"delay": {"name": "uniform", "low": 0.1, "high": 2.0}})
    turns = fm.sql(
        run,
        """SELECT o.round, o.place, o.time AS asked, d.time AS answered, d.accepted, d.reason
           FROM offer o JOIN decision d ON d.round = o.round AND d.sender = o.receiver
           ORDER BY o.round, o.place""",
    ).to_pylist()
    assert len(turns) == 40 and {turn["place"] for turn in turns} == set(range(10))
    for before, after in pairwise(turns):
        assert before["asked"] < before["answered"]
        if before["round"] == after["round"]:
            assert before["answered"] < after["asked"]
    assert {turn["reason"] for turn in turns} == {"accepted", "nothing on the menu"}
    assert all(turn["accepted"] == (turn["reason"] == "accepted") for turn in turns)


def test_the_log_shows_every_menu_and_what_was_taken_lies_on_it(market):
    run = market(auction=SEQ)
    menus = fm.sql(
        run,
        """SELECT o.money, o.privacy_losses, o.payments, a.privacy_loss, a.payment FROM offer o
           JOIN allocation a ON a.round = o.round AND a.receiver = o.receiver""",
    ).to_pylist()
    assert len(menus) == 40
    for menu in menus:
        curve = np.interp(
            menu["privacy_loss"], [0, *menu["privacy_losses"]], [0, *menu["payments"]]
        )
        assert menu["payment"] == pytest.approx(curve, abs=1e-9) and menu["payment"] <= menu[
            "money"
        ] * (1 + 1e-12)
        assert max(menu["payments"]) <= menu["money"] * (1 + 1e-12)


def without_empty(table):
    """A stored scenario as a file would state it: without the keys that are not set."""
    if not isinstance(table, dict):
        return table
    return {key: without_empty(value) for key, value in table.items() if value is not None}


@pytest.mark.parametrize("families", [("linear", "quadratic", "step"), TRIAL_VALUATIONS])
@pytest.mark.parametrize("size", ["certified", "reported"])
def test_what_is_sold_in_turn_is_what_the_auction_decides_at_once(market, size, families):
    run = market(auction=SEQ | {"size": size}, rounds=6, owners={"families": list(families)})
    scenario = fm.read_run(run)["scenario"]
    owners = fm.read_owners(run).to_pydict()
    error = scenario_error(build_scenario(without_empty(scenario)))
    auction = fm.auctions.auction_in(fm.auctions.create("seq-price", size=size), error)
    for round_number in range(scenario["rounds"]):
        asked = fm.sql(
            run, f"select sender from bid where round = {round_number} order by seq"
        ).to_pydict()["sender"]
        mine = [
            np.array([[owners[c][i] for i in asked]])
            for c in ("family", "rate", "privacy_budget", "data_size")
        ]
        truth = fm.Profiles(*mine)
        money = fm.sql(run, f"select budget from rounds where round = {round_number}").to_pydict()[
            "budget"
        ]
        outcome = auction.decide(truth.bids(), np.array(money), np.random.default_rng(0))
        rows = [row for row in sold(run) if row["round"] == round_number]
        expected = dict(
            zip(asked, zip(outcome.privacy_loss[0], outcome.payment[0], strict=True), strict=True)
        )
        for row in rows:
            assert (row["privacy_loss"], row["payment"]) == pytest.approx(
                expected[row["owner"]], rel=1e-9, abs=1e-9
            )
        if size == "reported":
            records = dict(zip(asked, outcome.data_size[0], strict=True))
            sent = fm.sql(
                run, f"select sender, records from gradient where round = {round_number}"
            ).to_pylist()
            assert sent and all(
                gradient["records"] == records[gradient["sender"]] for gradient in sent
            )


def utilities(run, behaviour):
    rows = fm.sql(
        run,
        f"""SELECT c.utility, c.truthful_utility FROM counterfactual c
            JOIN bid b ON b.round = c.round AND b.sender = c.sender
            WHERE b.behaviour = '{behaviour}'""",
    ).to_pydict()
    return np.array(rows["utility"]), np.array(rows["truthful_utility"])


@pytest.mark.parametrize(
    "lie",
    [
        {"name": "scale", "factor": 1.3},
        {"name": "shade", "privacy_budget": 0.8},
        {"name": "pretend", "family": "quadratic"},
        {"name": "best-response"},
        {"name": "truthful"},
    ],
    ids=lambda lie: lie["name"],
)
def test_an_owner_of_any_valuation_answers_her_menu_best_by_the_truth(market, lie):
    run = market(
        auction=SEQ,
        rounds=6,
        owners={"families": list(TRIAL_VALUATIONS), "behaviours": [lie | {"share": 0.5}]},
        market={"counterfactual": True},
    )
    got, honest = utilities(run, lie["name"])
    assert len(got) and (got <= honest + 1e-9 * np.abs(honest).max()).all()
    if lie["name"] in ("best-response", "truthful"):
        assert got == pytest.approx(honest, rel=1e-9, abs=1e-9 * np.abs(honest).max())
    else:
        assert (got < honest * (1 - 1e-6)).any()


def test_whoever_answers_too_late_sells_nothing_and_the_round_goes_on(market):
    run = market(
        auction=SEQ,
        rounds=12,
        market={
            "delay": {"name": "lognormal", "median": 0.4, "sigma": 1.0},
            "decision_deadline": 1.5,
        },
        owners={
            "availability": 0.9,
            "dropout": 0.1,
            "lifetime_budget": 4.0,
            "families": ["linear", "sqrt", "step"],
        },
    )
    late = fm.sql(run, "select count(*) as n from late where message = 'decision'").to_pylist()[0][
        "n"
    ]
    assert late > 0
    balance = fm.sql(
        run,
        """SELECT r.round, r.spent, r.budget, r.delivered,
           sum(CASE WHEN p.sender = -1 THEN p.amount END) AS received
           FROM rounds r LEFT JOIN payment p ON p.round = r.round GROUP BY ALL""",
    ).to_pylist()
    assert all(
        row["received"] == pytest.approx(row["spent"]) for row in balance if row["delivered"]
    )
    assert all(row["spent"] <= row["budget"] * (1 + 1e-9) for row in balance)
    assert max(fm.read_ledger(run).to_pydict()["privacy_sold"]) <= 4.0 * (1 + 1e-9)


def test_a_liar_gains_nothing_in_turn(market):
    lying = [
        {"name": "scale", "share": 0.5, "factor": 1.4},
        {"name": "best-response", "share": 0.3},
    ]
    run = market(
        auction=SEQ, owners={"behaviours": lying}, market={"counterfactual": True}, rounds=10
    )
    rows = fm.sql(
        run,
        """SELECT b.behaviour, c.utility, c.truthful_utility FROM counterfactual c
           JOIN bid b ON b.round = c.round AND b.sender = c.sender""",
    ).to_pylist()
    assert {row["behaviour"] for row in rows} == {"scale", "best-response"}
    assert all(row["utility"] <= row["truthful_utility"] + 1e-6 for row in rows)
    scaled = [row for row in rows if row["behaviour"] == "scale"]
    assert sum(row["utility"] for row in scaled) < 0.99 * sum(
        row["truthful_utility"] for row in scaled
    )


def test_the_truth_of_a_truthful_owner_is_what_she_got_whatever_others_decline(market):
    mixed = [{"name": "truthful", "share": 0.5}, {"name": "scale", "share": 0.5, "factor": 0.3}]
    run = market(
        auction=SEQ, owners={"behaviours": mixed}, market={"counterfactual": True}, rounds=8
    )
    rows = fm.sql(
        run,
        """SELECT b.behaviour, c.utility, c.truthful_utility FROM counterfactual c
           JOIN bid b ON b.round = c.round AND b.sender = c.sender""",
    ).to_pylist()
    honest = [row for row in rows if row["behaviour"] == "truthful"]
    assert (
        len(honest) > 20
        and fm.sql(run, "select 1 from decision where reason = 'below cost'").num_rows > 0
    )
    assert all(row["utility"] == pytest.approx(row["truthful_utility"], abs=1e-9) for row in honest)


def test_a_late_answer_is_worth_nothing_not_less(market):
    slow = {
        "delay": {"name": "uniform", "low": 0.1, "high": 3.0},
        "decision_deadline": 3.0,
        "counterfactual": True,
    }
    run = market(
        auction=SEQ,
        owners={"behaviours": [{"name": "truthful", "share": 1.0}]},
        market=slow,
        rounds=6,
    )
    assert fm.sql(run, "select 1 from late where message = 'decision'").num_rows > 0
    assert min(fm.read_events(run, "counterfactual").to_pydict()["utility"]) >= 0


def test_a_step_owner_with_two_names_pays_her_cost_once(market):
    names = {"behaviours": [{"name": "false-names", "share": 1.0}], "families": ["step"]}
    run = market(
        auction=SEQ, owners=names, market={"counterfactual": True}, budget={"factor": 2.0}, rounds=8
    )
    told = sum(fm.read_events(run, "counterfactual").to_pydict()["utility"])
    rounds = fm.sql(run, "select sum(spent - value_sold) as surplus from rounds").to_pylist()[0][
        "surplus"
    ]
    assert told == pytest.approx(rounds, rel=1e-9)
