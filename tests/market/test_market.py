"""What happens in a round, and what becomes of owners who decline, drop out or come late."""

import json

import numpy as np
import pytest
import torch

import flmarket_sim as fm
from flmarket_sim.errors import ContractError, InputError
from flmarket_sim.eventlog import BROKER, buyer_id, parquet_log, pending_events
from flmarket_sim.privacy.noise import SimulationNoise
from flmarket_sim.randomness import Purpose
from flmarket_sim.scenario.scenario_file import build_scenario

HERE = "tests.support.mechanisms:"


def rows(run, kind, **where):
    found = fm.read_events(run, kind).to_pylist()
    return [row for row in found if all(row[key] == value for key, value in where.items())]


def names(run, kind, column="sender", **where):
    return [(row["round"], row[column]) for row in rows(run, kind, **where)]


def test_a_round_goes_through_the_steps_of_algorithm_1(market):
    run = market(rounds=1, market={"delay": {"name": "uniform", "low": 0.5, "high": 1.0}})
    steps = [
        "announcement",
        "bid",
        "allocation",
        "decision",
        "model",
        "gradient",
        "weight",
        "delivery",
        "payment",
        "update",
        "round",
    ]
    first = [rows(run, kind)[0]["time"] for kind in steps]
    assert first == sorted(first)
    announced = rows(run, "announcement")
    assert (announced[0]["sender"], announced[0]["receiver"]) == (buyer_id(0), BROKER)
    assert len(announced) == 11 and {row["sender"] for row in announced[1:]} == {BROKER}
    for allocation in rows(run, "allocation"):
        bid = rows(run, "bid", sender=allocation["receiver"])[0]
        assert 0.5 <= bid["time"] - announced[1]["time"] <= 1.0
        assert allocation["time"] - bid["time"] >= 0.5


def test_bids_are_truthful_and_owners_parquet_says_so(market):
    run = market()
    owners = fm.read_owners(run).to_pylist()
    for bid in rows(run, "bid"):
        owner = owners[bid["sender"]]
        assert all(
            bid[key] == owner[key] for key in ("family", "rate", "privacy_budget", "data_size")
        )
        truth = fm.Profiles(
            [[owner["family"]]],
            [[owner["rate"]]],
            [[owner["privacy_budget"]]],
            [[owner["data_size"]]],
        )
        assert bid["value"] == pytest.approx(truth.total_value()[0]) and bid["values"] is None


def test_the_decision_can_be_recomputed_from_the_log(market):
    run = market(auction={"name": "all-in-critical"}, rounds=3)
    for number in range(3):
        bids, announced = rows(run, "bid", round=number), rows(run, "announcement", round=number)[0]
        batch = fm.BidBatch(
            [[[bid["value"]] for bid in bids]],
            [[b["privacy_budget"] for b in bids]],
            [[b["data_size"] for b in bids]],
        )
        outcome = fm.auctions.create("all-in-critical").decide(
            batch, np.array([announced["budget"]]), np.random.default_rng()
        )
        logged = rows(run, "allocation", round=number)
        assert [row["receiver"] for row in logged] == [bid["sender"] for bid in bids]
        assert [row["payment"] for row in logged] == outcome.payment[0].tolist()


def test_an_owner_who_is_paid_too_little_declines_and_is_neither_paid_nor_aggregated(market):
    run = market(auction={"name": HERE + "Everybody"}, budget={"factor": 0.4})
    declined = names(run, "decision", accepted=False)
    assert declined and {row["reason"] for row in rows(run, "decision", accepted=False)} == {
        "below cost"
    }
    for kind, column in (
        ("gradient", "sender"),
        ("weight", "receiver"),
        ("payment", "receiver"),
        ("model", "receiver"),
    ):
        assert not set(declined) & set(names(run, kind, column))
    for decision in rows(run, "decision"):
        offer = rows(run, "allocation", round=decision["round"], receiver=decision["sender"])[0][
            "payment"
        ]
        assert decision["accepted"] == (offer >= decision["value"])


def test_owners_who_always_accept_may_lose(market):
    run = market(
        auction={"name": HERE + "Everybody"}, budget={"factor": 0.4}, owners={"accept": "always"}
    )
    assert all(row["accepted"] for row in rows(run, "decision"))
    assert any(row["spent"] < row["value_sold"] for row in rows(run, "round"))


def test_an_owner_who_drops_out_is_neither_paid_nor_aggregated_and_keeps_her_privacy(market):
    run = market(owners={"dropout": 0.5}, market={"gradient_deadline": 5.0})
    dropped = names(run, "dropout", stage="gradient", reason="dropped out")
    assert dropped
    for kind, column in (("gradient", "sender"), ("weight", "receiver"), ("payment", "receiver")):
        assert not set(dropped) & set(names(run, kind, column))
    for number in {number for number, _ in dropped}:
        delivery, broadcast = (
            rows(run, "delivery", round=number)[0],
            rows(run, "model", round=number)[0],
        )
        assert delivery["time"] == pytest.approx(
            broadcast["time"] + 5.0
        )  # the broker waited for her


def test_a_late_gradient_costs_privacy_and_earns_nothing(market):
    run = market(owners={"records_per_second": [1.0, 50.0]}, market={"gradient_deadline": 3.0})
    late = names(run, "late", message="gradient")
    assert late and set(late) <= set(names(run, "gradient"))
    assert not set(late) & set(names(run, "payment", "receiver")) and not set(late) & set(
        names(run, "weight", "receiver")
    )
    sold = {}
    for gradient in rows(run, "gradient"):
        sold[gradient["sender"]] = sold.get(gradient["sender"], 0) + gradient["privacy_loss"]
    ledger = {
        row["owner"]: row["privacy_sold"]
        for row in fm.read_ledger(run).to_pylist()
        if row["privacy_sold"]
    }
    assert ledger == pytest.approx(sold)


def test_absent_owners_and_late_bids_are_left_out_of_the_auction(market):
    slow = {"delay": {"name": "uniform", "low": 0.0, "high": 2.0}, "bid_deadline": 2.0}
    run = market(owners={"availability": 0.7}, market=slow, rounds=6)
    away, late = names(run, "dropout", reason="away"), names(run, "late", message="bid")
    assert away and late
    asked, bid = set(names(run, "announcement", "receiver")), set(names(run, "bid"))
    assert {name for name in asked if name[1] != BROKER} == set(away) | bid
    assert set(names(run, "allocation", "receiver")) == bid - set(late)


def test_late_decisions_are_too_late(market):
    run = market(
        market={"delay": {"name": "uniform", "low": 0.0, "high": 2.0}, "decision_deadline": 2.0},
        rounds=6,
    )
    late = names(run, "late", message="decision")
    assert late and not set(late) & set(names(run, "model", "receiver"))


@pytest.mark.parametrize(
    "how",
    [
        {"auction": {"name": HERE + "Nobody"}},
        {"owners": {"availability": 0.0}},
        {"owners": {"dropout": 1.0}},
    ],
)
def test_a_round_in_which_nobody_sells_is_a_row_like_any_other(market, how):
    run = market(
        data={"name": "synthetic", "records": 4000}, model={"name": "logistic"}, rounds=3, **how
    )
    assert json.loads((run / "run.json").read_text())["outcome"] == "finished"
    table = rows(run, "round")
    assert [row["valid"] for row in table] == [False] * 3 and all(
        row["spent"] == 0 for row in table
    )
    assert all(np.isinf(row["error_bound"]) for row in table)
    assert (
        not rows(run, "payment") and len({row["loss"] for row in table}) == 1
    )  # the model did not move


def test_a_lifetime_budget_caps_bids_and_ends_sales(market):
    run = market(
        owners={"count": 12, "lifetime_budget": 2.5, "families": ["linear", "step"]},
        rounds=12,
        budget={"factor": 2.0},
    )
    ledger = fm.read_ledger(run).column("privacy_sold").to_numpy()
    assert ledger.max() <= 2.5 * (1 + 1e-9) and (ledger > 2.49).sum() > 6
    truth = {row["owner"]: row["privacy_budget"] for row in fm.read_owners(run).to_pylist()}
    assert any(bid["privacy_budget"] < truth[bid["sender"]] for bid in rows(run, "bid"))
    assert names(run, "dropout", stage="bid", reason="lifetime budget")


def test_two_buyers_share_owners_and_their_lifetime_budgets(market):
    buyers = [
        {"name": "a"},
        {"name": "b", "budget": {"amount": 1000.0}, "auction": {"name": "posted-price"}},
    ]
    owners = {"count": 12, "lifetime_budget": 2.5}
    run = market(
        buyers=buyers,
        owners=owners,
        rounds=10,
        budget={"factor": 2.0},
        market={"delay": {"name": "uniform", "low": 0.1, "high": 1.0}},
    )
    assert {row["buyer"] for row in rows(run, "round")} == {"a", "b"} and len(
        rows(run, "round")
    ) == 20
    assert {row["budget"] for row in rows(run, "round", buyer="b")} == {1000.0}
    assert fm.read_ledger(run).column("privacy_sold").to_numpy().max() <= 2.5 * (1 + 1e-9)
    assert any(row["reason"] == "lifetime budget" for row in rows(run, "decision"))
    for buyer in ("a", "b"):
        paid = sum(row["amount"] for row in rows(run, "payment", buyer=buyer, receiver=BROKER))
        passed_on = sum(row["amount"] for row in rows(run, "payment", buyer=buyer, sender=BROKER))
        assert paid == pytest.approx(passed_on) and paid > 0


def test_any_torch_module_can_be_the_model_and_learns(tmp_path):
    scenario = build_scenario(
        {
            "rounds": 20,
            "data": {
                "name": "synthetic",
                "records": 2000,
                "features": 5,
                "classes": 3,
                "separation": 4.0,
            },
            "owners": {"count": 20, "privacy_budget": 500.0, "families": ["linear"]},
            "model": {
                "name": "tests.learning.test_models:TwoLayers",
                "hidden": 4,
                "learning_rate": 5.0,
                "evaluate_every": 5,
            },
            "budget": {"factor": 2.0},
        }
    )
    run = fm.run(scenario, tmp_path / "run").path
    measured = [row for row in rows(run, "round") if row["accuracy"] is not None]
    assert [row["round"] for row in measured] == [4, 9, 14, 19]
    assert measured[-1]["accuracy"] > 0.6
    recall = rows(run, "update", round=19)[0]["recall"]
    assert len(recall) == 3 and measured[-1]["loss"] < measured[0]["loss"]


PAPERS = {
    "perturbation": {"name": "laplace"},
    "aggregation": {"name": "opt-aggr", "error": "coordinate"},
}


def test_the_true_error_is_noise_plus_bias(market):
    data = {"name": "synthetic", "records": 4000, "features": 30}
    many = {"data": data, "model": {"name": "logistic"}, "rounds": 40} | PAPERS
    quiet = rows(
        market(
            **many, owners={"privacy_budget": 1e6, "families": ["linear"]}, budget={"factor": 0.3}
        ),
        "delivery",
    )
    for row in quiet:
        assert row["true_error"] == pytest.approx(row["true_squared_bias"], rel=1e-2)
        assert row["true_squared_bias"] <= row["squared_bias"]
    noisy = rows(market(**many, budget={"factor": 1.0}), "delivery")
    dimension = 31 * 4
    measured = np.mean(
        [
            (row["true_error"] - row["true_squared_bias"]) / (dimension * row["variance"])
            for row in noisy
        ]
    )
    assert measured == pytest.approx(1.0, rel=0.1)


def test_gradients_are_clipped_and_noise_scales_follow_the_losses(market):
    run = market(
        data={"name": "synthetic", "records": 4000},
        model={"name": "logistic"},
        privacy={"clip": 0.5},
        **PAPERS,
    )
    for row in rows(run, "gradient"):
        assert row["noise_scale"] == pytest.approx(2 * 0.5 / row["privacy_loss"])
        assert row["clipped"] == (row["norm"] > 0.5) and row["bytes"] == 8 * 21 * 4


def events_of(run):
    return {path.relative_to(run): path.read_bytes() for path in sorted(run.rglob("*.parquet"))}


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path):
    scenario = fm.load_scenario(
        "scenarios/studies/unreliable.toml", ["rounds=6", "model.name=logistic"]
    )
    first, second = (fm.run(scenario, tmp_path / name) for name in ("a", "b"))
    assert events_of(first.path) == events_of(second.path)
    assert first.info["log"]["sha256"] == second.info["log"]["sha256"]
    other = fm.run(
        fm.load_scenario(
            "scenarios/studies/unreliable.toml", ["rounds=6", "model.name=logistic", "seed=8"]
        ),
        tmp_path / "c",
    )
    assert other.info["log"]["sha256"] != first.info["log"]["sha256"]


def test_another_policy_meets_the_same_owners_budgets_delays_and_noise(market, monkeypatch):
    drawn = []

    release = SimulationNoise.release

    def recording(self, prepared, privacy_loss, owner, *key):
        unit = self.streams.generator(Purpose.NOISE, owner, *key).laplace(size=len(prepared))
        sent = release(self, prepared, privacy_loss, owner, *key)
        np.testing.assert_array_equal(sent, prepared + unit * (2 * self.clip / privacy_loss))
        drawn.append((owner, unit.tobytes()))
        return sent

    monkeypatch.setattr(SimulationNoise, "release", recording)
    world = {
        "perturbation": {"name": "laplace"},
        "market": {"delay": {"name": "lognormal", "median": 0.2}},
        "owners": {"availability": 0.8, "dropout": 0.2},
        "data": {"name": "synthetic", "records": 4000},
        "model": {"name": "logistic"},
        "rounds": 1,
    }
    runs = [
        market(auction={"name": name}, aggregation={"name": rule}, **world)
        for name, rule in (("all-in", "opt-aggr"), (HERE + "Lottery", "uniform"))
    ]
    assert fm.read_owners(runs[0]) == fm.read_owners(runs[1])
    for kind in ("announcement", "bid"):
        assert rows(runs[0], kind) == rows(runs[1], kind)
    both = set(names(runs[0], "gradient")) & set(names(runs[1], "gradient"))
    norms = [{row["sender"]: row["norm"] for row in rows(run, "gradient")} for run in runs]
    assert both and all(norms[0][owner] == norms[1][owner] for _, owner in both)
    assert len(set(drawn)) == len(drawn) - len(
        both
    )  # who sold in both runs had the same noise in both


def test_a_mechanism_that_overspends_is_stopped_and_the_log_stays_readable(tmp_path):
    data = {
        "data": {"name": "synthetic", "records": 4000},
        "model": {"name": "none"},
        "auction": {"name": HERE + "Spendthrift"},
    }
    with pytest.raises(ContractError, match=r"'spendthrift' spends .* of a budget of"):
        fm.run(build_scenario(data), tmp_path / "run")
    info = fm.read_run(tmp_path / "run")
    assert info["outcome"] == "failed" and "spends" in info["error"]
    assert [row["round"] for row in rows(tmp_path / "run", "round")] == [0, 1]


def test_two_runs_never_share_a_directory(tmp_path, market):
    run = market()
    with pytest.raises(InputError, match="not empty"):
        fm.run(build_scenario({}), run)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        fm.run(build_scenario({}), tmp_path / "file")


def test_an_interrupted_run_is_readable_up_to_there(tmp_path):
    def interrupt(done, total):
        if done == 3:
            raise KeyboardInterrupt

    scenario = build_scenario(
        {"data": {"name": "synthetic", "records": 4000}, "model": {"name": "none"}}
    )
    with pytest.raises(KeyboardInterrupt):
        fm.run(scenario, tmp_path / "run", progress=interrupt)
    assert fm.read_run(tmp_path / "run")["outcome"] == "interrupted"
    assert len(rows(tmp_path / "run", "round")) == 3


def test_a_model_that_runs_away_is_said_to(tmp_path):
    data = {
        "data": {"name": "synthetic", "records": 4000},
        "model": {"name": "logistic", "learning_rate": 1e308},
    }
    with pytest.raises(InputError, match="learning rate"):
        fm.run(build_scenario(data), tmp_path / "run")


def test_a_rule_that_breaks_its_contract_is_stopped(tmp_path):
    for name, message in (
        ("HeavyRule", "must sum to 1"),
        ("NanRule", "finite"),
        ("CrashingRule", "ZeroDivisionError"),
    ):
        data = {
            "data": {"name": "synthetic", "records": 4000},
            "model": {"name": "none"},
            "aggregation": {"name": HERE + name},
        }
        with pytest.raises(ContractError, match=message):
            fm.run(build_scenario(data), tmp_path / name)


def test_a_capped_step_owner_spells_out_her_values(market):
    run = market(
        owners={"count": 12, "lifetime_budget": 2.5, "families": ["step"]},
        rounds=6,
        budget={"factor": 2.0},
    )
    truth = {row["owner"]: row for row in fm.read_owners(run).to_pylist()}
    capped = [
        bid
        for bid in rows(run, "bid")
        if bid["privacy_budget"] < truth[bid["sender"]]["privacy_budget"]
    ]
    assert capped
    for bid in capped:
        owner = truth[bid["sender"]]
        assert bid["values"] == pytest.approx(
            [owner["rate"] * owner["data_size"] * owner["privacy_budget"]] * 8
        )


def test_torch_models_give_the_same_bytes_on_one_and_two_threads(tmp_path):
    data = {
        "rounds": 2,
        "data": {"name": "synthetic", "records": 30_000, "features": 122},
        "owners": {"count": 4, "families": ["linear"], "privacy_budget": 1e5},
        "market": {"bidders": 4},
        "model": {"name": "tests.learning.test_models:TwoLayers"},
    }
    before, hashes = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            hashes.append(
                fm.run(build_scenario(data), tmp_path / str(threads)).info["log"]["sha256"]
            )
    finally:
        torch.set_num_threads(before)
    assert hashes[0] == hashes[1]


def test_many_buyers_fit_into_one_log(market):
    buyers = [{"name": f"b{i}"} for i in range(100)]
    assert len({row["buyer"] for row in rows(market(buyers=buyers, rounds=1), "round")}) == 100


def test_an_interrupt_in_the_middle_of_a_flush_loses_and_doubles_nothing(tmp_path, monkeypatch):
    """Whatever stops a flush, leaving the log afterwards writes each event once."""
    torn = []
    original = pending_events.PendingEvents._arrays

    def tear(self, blocks):
        if self.schema.metadata[b"flmarket_kind"] == b"bid":
            torn.append(True)
            if len(torn) == 3:
                raise KeyboardInterrupt
        return original(self, blocks)

    monkeypatch.setattr(pending_events.PendingEvents, "_arrays", tear)
    monkeypatch.setattr(parquet_log, "EVENTS_PER_PART", 1000)
    monkeypatch.setattr(parquet_log, "JOURNAL_SECONDS", 0.0)
    scenario = build_scenario(
        {"data": {"name": "synthetic", "records": 4000}, "model": {"name": "none"}}
    )
    with pytest.raises(KeyboardInterrupt):
        fm.run(scenario, tmp_path / "run")
    info = fm.read_run(tmp_path / "run")
    assert info["outcome"] == "interrupted" and torn
    seqs = [
        seq
        for kind in fm.eventlog.KINDS
        for seq in fm.read_events(tmp_path / "run", kind).column("seq").to_pylist()
    ]
    assert len(seqs) == len(set(seqs)) == info["log"]["events"] == max(seqs)
