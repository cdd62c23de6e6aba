"""docs/mechanisms.md has every built-in mechanism, from its class and from what was measured."""

import inspect
import re

import numpy as np
import pytest

from docs import mechanisms
from flmarket_sim.league.card import card
from flmarket_sim.plugins.registry import BUILT_IN, auctions


@pytest.mark.parametrize("name", BUILT_IN["auction"])
def test_a_mechanism_has_words_a_formula_and_a_reference(name):
    cls = auctions.get(name)
    assert len((inspect.getdoc(cls) or "").split()) > 5
    assert 10 < len(cls.formula) <= 100
    assert len(cls.reference) > 10


def test_every_mechanism_is_on_the_page():
    assert mechanisms.listed() == list(BUILT_IN["auction"])
    for name in mechanisms.listed():
        assert (mechanisms.FIGURES / f"{name}.svg").exists(), name


def test_the_page_is_made_from_classes_entries_and_numbers():
    assert mechanisms.PAGE.read_text() == mechanisms.page(), "run 'python -m docs.mechanisms'"


def test_a_section_has_what_the_publication_claims_beside_what_is_refuted():
    numbers = {"audit": {"truthful": {"single-minded": {"outcome": "refuted"}}}}
    for name in mechanisms.listed():
        section = mechanisms.section(name, numbers, {})
        assert ("- Its publication claims: " in section) == bool(
            getattr(auctions.get(name), "claims", {})
        )
    csra = mechanisms.section("csra", numbers, {})
    claimed = "truthful for single-minded owners, individually rational for every owner."
    assert f"- Its publication claims: {claimed}" in csra


@pytest.mark.parametrize("name", ["seq-price", "regretnet", "contract-menu"])
def test_promises_name_their_condition(name):
    section = mechanisms.section(name, {"audit": {}}, {})
    assert re.search(r"- Promises: .*, if records are certified\.", section)
    assert "certified." not in mechanisms.section("clock", {"audit": {}}, {})


def test_answers_follow_the_ask(monkeypatch):
    """A first-price auction pays more to whoever asks a little more, and nothing to the dearest."""
    monkeypatch.setattr(mechanisms, "MARKETS", 6)
    monkeypatch.setattr(mechanisms, "ASKS", np.array([0.5, 0.6, 100.0]))
    sold, paid = mechanisms.answers("pay-as-bid", card().market("iid"))
    assert sold[0] == sold[1] > 0.5
    assert paid[1] == pytest.approx(1.2 * paid[0], rel=1e-2)
    assert sold[2] == paid[2] == 0.0


def test_more_money_buys_less_error(monkeypatch):
    monkeypatch.setattr(mechanisms, "MARKETS", 6)
    monkeypatch.setattr(mechanisms, "FACTORS", (0.1, 2.0))
    poor, rich = mechanisms.errors_by_budget("proportional-share", card().market("iid"))
    assert poor > rich >= 1.0
