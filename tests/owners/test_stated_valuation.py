"""Valuations that reports state: they count where they agree with the table of the report."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.owners.owner_types import OwnerTypes
from flmarket_sim.owners.stated_valuation import TABLE, StatedValuations
from flmarket_sim.owners.valuation import unit_value
from flmarket_sim.testing.trial_valuations import TRIAL_VALUATIONS

FAMILIES = ["linear", "step", TRIAL_VALUATIONS[0], TRIAL_VALUATIONS[5]]


def truth():
    rng = np.random.default_rng(0)
    shape = (5, len(FAMILIES))
    return fm.Profiles(
        np.broadcast_to(np.array(FAMILIES), shape),
        rng.uniform(0.5, 1.5, shape),
        rng.uniform(0.5, 2.0, shape),
        rng.integers(1, 100, shape).astype(float),
    )


def test_a_truthful_bid_states_what_every_loss_is_worth():
    owners = truth()
    stated = owners.bids().stated
    for share in (0.1, 0.37, 1.0):
        loss = share * owners.privacy_budget
        assert stated.scale * unit_value(stated.family, loss) == pytest.approx(owners.value(loss))


def test_a_statement_counts_where_it_agrees_with_the_table():
    bids = truth().bids(4)
    values = bids.values.copy()
    values[0, 0, 1] *= 1.001
    changed = replace(bids, values=values)
    family = changed.stated.where_they_agree(changed.values, changed.privacy_budget).family
    assert family[0, 0] == TABLE
    assert (np.delete(family.ravel(), 0) == np.delete(bids.stated.family.ravel(), 0)).all()


def test_statements_are_pickled_and_written_by_name():
    stated = truth().bids().stated.replaced((0, 0), StatedValuations.tables(()))
    names = stated.names()
    assert names[:4] == [None, *FAMILIES[1:]]
    for again in (pickle.loads(pickle.dumps(stated)), StatedValuations.named(names, stated.scale)):
        assert (again.family == stated.family).all() and (again.scale == stated.scale).all()
    assert b"trial_valuations:Between" in pickle.dumps(stated)


def test_the_value_of_fewer_records_is_stated_for_them():
    owners = truth()
    types = OwnerTypes(*owners.types)
    half = StatedValuations.of(types, 0.5 * types.data_size)
    whole = StatedValuations.of(types)
    step = np.array(FAMILIES) == "step"
    assert half.scale[:, ~step] == pytest.approx(0.5 * whole.scale[:, ~step])
    assert (half.scale[:, step] == whole.scale[:, step]).all()


def test_statements_of_another_shape_are_refused():
    bids = truth().bids()
    with pytest.raises(InputError, match=r"must have shape \(5, 4\), got \(2, 4\)"):
        replace(bids, stated=bids.stated.at(slice(2)))
