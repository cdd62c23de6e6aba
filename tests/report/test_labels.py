"""Inputs of a comparison are named by what differs."""

from flmarket_sim.report.html.labels import labels_by_difference


def test_labels_are_the_settings_that_differ():
    base = {"name": "market", "auction.name": "all-in", "seed": "1", "budget.factor": "0.5"}
    others = [base, base | {"seed": "3"}, base | {"auction.name": "posted-price", "seed": "3"}]
    assert labels_by_difference(others, ["a", "b", "c"]) == [
        "auction all-in, seed 1",
        "auction all-in, seed 3",
        "auction posted-price, seed 3",
    ]
    assert labels_by_difference([base, base | {"budget.factor": "2"}], ["a", "b"]) == [
        "budget factor 0.5",
        "budget factor 2",
    ]


def test_inputs_that_settings_do_not_tell_apart_have_the_name_of_their_folder():
    base = {"name": "market", "seed": "1"}
    assert labels_by_difference([base, base], ["one", "two"]) == ["one", "two"]
    assert labels_by_difference([base, base], ["one", "one"]) == ["one", "one (2)"]
    assert labels_by_difference([base, base, base | {"seed": "2"}], ["a", "b", "c"]) == [
        "seed 1 (a)",
        "seed 1 (b)",
        "seed 2",
    ]
    assert labels_by_difference([base, base | {"name": "other"}], ["a", "b"]) == ["market", "other"]
