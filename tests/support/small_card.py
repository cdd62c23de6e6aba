"""A card of two small markets, for tests of the league."""

import numpy as np
import pytest

from flmarket_sim.league import card as card_module
from flmarket_sim.league import card_draws, yardsticks

TEXT = """
version = 7

[sizes.full]
decisions = 6
probed = 2
together = 2
rest = 2
seeds = 2
effort = "quick"

[sizes.quick]
decisions = 3
probed = 1
together = 1
rest = 1
searched_in = ["plain"]
seeds = 1
effort = "quick"

[base]
rounds = 1
data = { name = "synthetic", records = 2000 }
owners = { count = 40, families = ["linear", "sqrt"] }
market = { bidders = 4, levels = 8 }
budget = { factor = [0.3, 1.0] }
aggregation = { name = "opt-aggr", error = "coordinate" }
model = { name = "none" }

[[markets]]
name = "plain"
why = "a small market"
seed = 1
draws = 6

[[markets]]
name = "unsearched"
why = "a market that nobody attacks"
seed = 2
draws = 6
kappa = 50.0
attacked = false

[training]
why = "a small model"
seed = 3
rounds = 2
data = { name = "digits" }
owners = { count = 20 }
market = { bidders = 4 }
perturbation = { name = "priv-unit", length = "unit" }
budget = { factor = [0.5, 2.0] }
model = { name = "logistic", learning_rate = 0.4 }
"""


@pytest.fixture(scope="module")
def small_card():
    """The small card in place of the league's in all tests of a file, with yardsticks of one."""
    monkeypatch = pytest.MonkeyPatch()
    caches = (card_module.card, card_draws._all, yardsticks._file)
    for cached in caches:
        cached.cache_clear()
    monkeypatch.setattr(card_module, "_text", lambda: TEXT)
    played = card_module.card()
    ones = np.ones(6).tolist()
    content = {
        market.name: {
            "market_sha256": played.market_sha256(market), "floor": ones, "first_best": ones,
        }
        for market in played.markets
    }  # fmt: skip
    monkeypatch.setattr(yardsticks, "_file", lambda: content)
    yield played
    monkeypatch.undo()
    for cached in caches:
        cached.cache_clear()
