"""Every check of a robust rule can fail: for each there is a rule that it refuses."""

import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.plugins.registry import robust_rules
from flmarket_sim.testing import NotARobustRule, check_robust_rule
from flmarket_sim.testing.robust_check import CHECKS
from tests.testing.broken_robust_rules import BROKEN

BUILT_IN = [(name, {}) for name in robust_rules.names()] + [
    ("trimmed-mean", {"trim": 0.0}),
    ("trimmed-mean", {"trim": 0.45}),
    ("krum", {"cheats": 0.4}),
    ("multi-krum", {"cheats": 0.0}),
    ("norm-bounding", {"factor": 1.0}),
    ("geometric-median", {"tolerance": 1e-9}),
]


@pytest.mark.parametrize(("name", "options"), BUILT_IN)
def test_every_built_in_keeps_the_contract(name, options):
    check_robust_rule(robust_rules.create(name, **options))


@pytest.mark.parametrize(("broken", "check", "complaint"), BROKEN)
def test_a_broken_rule_is_refused_for_what_is_wrong_with_it(broken, check, complaint):
    with pytest.raises(NotARobustRule, match=complaint):
        check_robust_rule(broken, only=[check])


def test_every_check_has_a_rule_that_it_refuses():
    assert {check for _, check, _ in BROKEN} == set(CHECKS)


def test_all_complaints_are_listed_together():
    broken = next(cls for cls, _, _ in BROKEN if cls.__name__ == "SaysHalf")
    with pytest.raises(NotARobustRule) as refused:
        check_robust_rule(broken)
    assert str(refused.value).count("\n- ") >= 2


def test_a_rule_without_a_breakdown_need_not_state_one():
    class Plain:
        name = "plain"

        def combine(self, messages, weights, variance):
            return weights @ messages

    check_robust_rule(Plain)


def test_what_is_no_rule_is_refused():
    class Nothing:
        name = "nothing"

    with pytest.raises(InputError, match="it has no combine"):
        check_robust_rule(Nothing)
    with pytest.raises(InputError, match="there is no check 'ordr'"):
        check_robust_rule("krum", only=["ordr"])
