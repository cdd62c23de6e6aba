"""The yardsticks that come with the package are those of its card."""

import numpy as np
import pytest

from flmarket_sim.auctions.first_best import first_best
from flmarket_sim.errors import InputError
from flmarket_sim.league import yardsticks
from flmarket_sim.league.card import card
from flmarket_sim.league.card_draws import draws


def test_every_draw_has_yardsticks():
    for market in card().markets:
        shipped = yardsticks.shipped(card(), market)
        assert shipped.floor.shape == shipped.first_best.shape == (market.draws,)
        assert shipped.floor.mean() > shipped.first_best.mean() > 0


def test_a_block_measured_again_is_the_same():
    market = card().market("few")
    block = yardsticks.blocks(market)[1]
    again, shipped = yardsticks.measured(card(), market, block), yardsticks.shipped(card(), market)
    np.testing.assert_allclose(again.floor, shipped.floor[block], rtol=1e-6)
    np.testing.assert_allclose(again.first_best, shipped.first_best[block], rtol=1e-6)


def test_first_best_of_some_draws_of_the_attacked_markets():
    for market in (market for market in card().markets if market.attacked):
        truth, budget = draws(card(), market, 2)
        found = first_best(truth, budget, error=market.error()).error_bound
        shipped = yardsticks.shipped(card(), market).first_best[:2]
        np.testing.assert_allclose(found, shipped, rtol=1e-3)


def test_yardsticks_of_another_market_are_refused():
    changed = card().market("iid").model_copy(update={"seed": 5})
    with pytest.raises(InputError, match="not of the market 'iid' as it is"):
        yardsticks.shipped(card(), changed)


def test_written_yardsticks_are_sealed(tmp_path):
    path = tmp_path / "yardsticks.json"
    parts = [yardsticks.Yardsticks(np.array([1 / 3]), np.array([0.25]))]
    yardsticks.write(path, card(), {"few": parts, "iid": parts})
    text = path.read_text()
    assert "0.333333333" in text
    assert "content_sha256" in text
