"""Training lowers the error of one price for all records, and counts what is not bought."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import flmarket_sim as fm
from flmarket_sim import training
from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.market_error import error_of_kappa
from flmarket_sim.aggregation.rule import weights_in
from flmarket_sim.auctions.auction import auction_in, sales_and_rest
from flmarket_sim.errors import InputError
from flmarket_sim.training.record_price_training import (
    RecordPriceTrainer,
    error_over_kappa,
    record_price_settings,
)

SCENARIO = fm.load_scenario("paper/iid")


@pytest.mark.parametrize("preset", ["fast", "part"])
def test_a_few_steps_lower_the_error(preset):
    settings = replace(record_price_settings(preset), steps=80, markets=128)
    trainer = RecordPriceTrainer([SCENARIO], "opt-aggr", settings)
    rows = [trainer.advance() for _ in range(80)]
    first, last = (np.mean([row["objective"] for row in part]) for part in (rows[:20], rows[-20:]))
    assert last < first - 0.05
    assert all(0 <= row["spent"] <= 1 + 1e-6 for row in rows)


def test_the_error_in_training_is_that_of_the_market():
    rng = np.random.default_rng(0)
    size = rng.integers(10, 500, (6, 4)).astype(float)
    loss = np.where(rng.random((6, 4)) < 0.7, rng.uniform(0.3, 2.0, (6, 4)), 0.02)
    records = np.floor(0.4 * size)
    counted = error_of_kappa(50.0)
    outcome = fm.auctions.Outcome(loss, np.zeros_like(loss), records)
    losses, sizes = sales_and_rest(outcome, size)
    weights = weights_in(fm.aggregation.create("opt-aggr"), losses, sizes, counted)
    truth = error_bound_in(counted, weights, losses, sizes).total
    made = error_over_kappa(
        "opt-aggr", *(torch.from_numpy(column) for column in (loss, records, size)), 50.0
    )
    assert made.numpy() * 50.0 == pytest.approx(truth, rel=1e-6)


def test_a_training_leaves_weights_that_decide(tmp_path):
    settings = replace(training.preset("part", "record-price"), steps=3, markets=16)
    out = tmp_path / "short.safetensors"
    learned = training.train("record-price", SCENARIO, "opt-aggr", out, settings, also=[SCENARIO])
    assert learned.facts["sells"] == "part"
    auction = auction_in(
        fm.auctions.create("record-price", weights=str(out)), error_of_kappa(100.0)
    )
    truth = fm.draw_profiles(SCENARIO, 5)
    outcome = auction.decide(truth.bids(), 0.5 * truth.total_value(), np.random.default_rng(0))
    assert (outcome.privacy_loss > 0).any()


def test_settings_that_are_none_are_refused(tmp_path):
    with pytest.raises(InputError, match="choose fast or part"):
        training.preset("paper", "record-price")
    with pytest.raises(InputError, match="`size`"):
        training.train(
            "record-price",
            SCENARIO,
            "opt-aggr",
            tmp_path / "x.safetensors",
            training.preset("fast", "record-price"),
            size="reported",
        )
