"""At a posted price each owner sells what suits her best of what the rest of the money can buy."""

import math

import numpy as np
import pytest

import flmarket_sim as fm
from tests.support.profiles import random_profiles


def obvious(values, privacy_budget, data_size, money, price):
    """One market, one owner after the other, one choice after the other."""
    losses, payments = [], []
    for value, budget, size in zip(values, privacy_budget, data_size, strict=True):
        levels = len(value)
        affordable = min(money / (price * size), budget)
        choices = {
            m / levels * budget: value[m - 1]
            for m in range(1, levels + 1)
            if m / levels * budget <= affordable
        }
        if affordable > 0:
            place = max(math.ceil(affordable / budget * levels - 1e-12), 1)
            choices.setdefault(affordable, value[place - 1])
        best = max(choices, key=lambda loss: price * size * loss - choices[loss], default=0.0)
        if choices and price * size * best < choices[best]:
            best = 0.0
        losses.append(best)
        payments.append(min(price * size * best, money))
        money -= payments[-1]
    return losses, payments


@pytest.mark.parametrize("price", [0.3, 1.0, 3.0])
def test_a_batch_is_decided_as_its_definition_decides_each_market(price):
    rng = np.random.default_rng(7)
    bids = random_profiles(rng, 200, 6).bids(levels=4)
    money = rng.uniform(0.05, 1.5, 200) * bids.full_value.sum(axis=1)
    outcome = fm.auctions.create("posted-price", price=price).decide(bids, money, rng)
    partly = (outcome.privacy_loss > 0) & (outcome.privacy_loss < bids.privacy_budget * 0.99)
    assert partly.any()  # else the levels would not matter here
    for k in range(200):
        loss, payment = obvious(
            bids.values[k], bids.privacy_budget[k], bids.data_size[k], money[k], price
        )
        assert outcome.privacy_loss[k] == pytest.approx(loss)
        assert outcome.payment[k] == pytest.approx(payment)


def test_the_price_is_two_unless_said_and_who_is_indifferent_sells():
    bids = fm.BidBatch(np.array([[[6.0]]]), np.array([[1.0]]), np.array([[3.0]]))
    outcome = fm.auctions.create("posted-price").decide(
        bids, np.array([100]), np.random.default_rng(0)
    )
    assert outcome.payment.tolist() == [[6.0]] and outcome.privacy_loss.tolist() == [[1.0]]
