"""The card: its markets are playable, and its hash says what it is."""

import pytest
from pydantic import ValidationError

from flmarket_sim.league.card import Card, card


def test_every_market_of_the_card_is_a_scenario():
    for market in card().markets:
        scenario = card().scenario(market)
        assert scenario.seed == market.seed
        assert scenario.market.levels == 8
    assert card().scenario(card().market("many")).market.bidders == 100
    assert card().scenario(card().market("steps")).owners.families == ("step",)


def test_seeds_of_markets_and_trainings_are_all_different():
    seeds = [market.seed for market in card().markets]
    seeds += [card().training_scenario(seed).seed for seed in range(card().sizes["full"].seeds)]
    assert len(set(seeds)) == len(seeds)


def test_the_two_regimes_of_the_error_are_played():
    paper, vector = card().market("iid").error(), card().market("vector").error()
    assert vector.kappa == 4880.0 != paper.kappa


def test_the_hash_follows_every_part_of_the_card():
    content = card().model_dump(mode="json")
    assert Card.model_validate(content).sha256 == card().sha256
    for change in (
        {"version": content["version"] + 1},
        {"base": content["base"] | {"budget": {"factor": [0.2, 2.0]}}},
        {"training": content["training"] | {"rounds": 41}},
    ):
        assert Card.model_validate(content | change).sha256 != card().sha256


def test_draws_of_a_market_depend_on_that_market_alone():
    content = card().model_dump(mode="json")
    other = Card.model_validate(
        content | {"version": content["version"] + 1, "training": {"seed": 1}}
    )
    market = card().market("iid")
    assert other.market_sha256(market) == card().market_sha256(market)
    moved = market.model_copy(update={"seed": 5})
    assert card().market_sha256(moved) != card().market_sha256(market)


def test_a_card_with_an_unknown_entry_is_refused():
    with pytest.raises(ValidationError):
        Card.model_validate(card().model_dump(mode="json") | {"colour": "red"})


def test_tests_of_a_market_by_size():
    assert card().tests(card().market("many"), "full") == ["decisions"]
    assert card().tests(card().market("rich"), "quick") == ["decisions", "lies"]
    assert card().tests(card().market("rich"), "full") == [
        "decisions", "lies", "names", "coalitions", "rest",
    ]  # fmt: skip
