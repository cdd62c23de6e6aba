"""Every property of a check can fail: for each there is a check that it refuses."""

import numpy as np
import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.plugins.registry import checks
from flmarket_sim.testing import NotACheck, check_check
from flmarket_sim.testing.check_check import PROPERTIES
from tests.testing.broken_checks import BROKEN, Percent


@pytest.mark.parametrize("name", checks.names())
def test_every_built_in_keeps_the_contract(name):
    check_check(name, rounds=8)


@pytest.mark.parametrize(("broken", "name", "complaint"), BROKEN)
def test_a_broken_check_is_refused_for_what_is_wrong_with_it(broken, name, complaint):
    with pytest.raises(NotACheck, match=complaint):
        check_check(broken, only=[name])


def test_every_property_has_a_check_that_it_refuses():
    assert {name for _, name, _ in BROKEN} == set(PROPERTIES)


def test_a_direction_that_honest_owners_do_not_have_is_an_assumption_that_fails():
    with pytest.raises(NotACheck, match="of honest owners"):
        check_check("likelihood-ratio", ("priv-unit",), rounds=10, alignment=1.0, only=["level"])


def test_what_is_no_check_is_refused():
    class NoScores:
        name = "no-scores"

        def p_values(self, evidence):
            return np.ones(len(evidence.messages))

    with pytest.raises(InputError, match="it has no scores"):
        check_check(NoScores)
    with pytest.raises(InputError, match="did you mean 'level'"):
        check_check(Percent, only=["levels"])
