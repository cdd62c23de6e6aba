"""Every check of a perturbation can fail: for each there is a perturbation that it refuses."""

import numpy as np
import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.plugins.registry import perturbations
from flmarket_sim.testing import NotAPerturbation, check_perturbation
from flmarket_sim.testing.perturbation_check import CHECKS
from tests.testing.broken_perturbations import BROKEN, CautiousAndSaysSo, DeltaForgotten

BUILT_IN = [(name, {}) for name in perturbations.names()] + [
    ("priv-unit", {"length": "unit"}),
    ("proj-unit", {"size": 3}),
    ("proj-unit", {"size": 3, "length": "unit"}),
    ("gaussian", {"delta": 0.01}),
]


@pytest.mark.parametrize(("name", "options"), BUILT_IN)
def test_every_built_in_keeps_the_contract(name, options):
    check_perturbation(perturbations.create(name, **options), draws=4_000)


@pytest.mark.parametrize(("broken", "check", "complaint"), BROKEN)
def test_a_broken_perturbation_is_refused_for_what_is_wrong_with_it(broken, check, complaint):
    with pytest.raises(NotAPerturbation, match=complaint):
        check_perturbation(broken, draws=10_000, only=[check])


def test_every_check_has_a_perturbation_that_it_refuses():
    assert {check for _, check, _ in BROKEN} == set(CHECKS)


def test_all_complaints_are_listed_together():
    with pytest.raises(NotAPerturbation) as refused:
        check_perturbation(DeltaForgotten, losses=(2.0,), dimensions=(2,), clips=(1.0,))
    assert str(refused.value).count("\n- ") == 1
    broken = next(cls for cls, _, _ in BROKEN if cls.__name__ == "Fails")
    with pytest.raises(NotAPerturbation) as refused:
        check_perturbation(broken, draws=100)
    assert str(refused.value).count("RuntimeError") >= 4


def test_a_variance_that_says_it_is_a_bound_need_not_be_reached():
    check_perturbation(CautiousAndSaysSo, draws=2_000, only=["moments"])


def test_a_search_finds_the_leak_also_where_the_author_names_another_pair():
    hides = next(cls for cls, _, _ in BROKEN if cls.__name__ == "HalfTheNoiseAndHidesIt")
    with pytest.raises(NotAPerturbation, match=r"promises e = 0.5, but .* e is at least 0\.[6-9]"):
        check_perturbation(hides, dimensions=(2,), only=["privacy"])


def test_what_is_no_perturbation_is_refused():
    class NoVariance:
        name, domain = "no-variance", "l1"

        def prepare(self, gradients, clip=1.0):
            return np.array(gradients)

        def release(self, gradients, privacy_loss, rng, clip=1.0):
            return np.array(gradients)

    with pytest.raises(InputError, match="it has no variance"):
        check_perturbation(NoVariance)
    with pytest.raises(InputError, match="did you mean 'moments'"):
        check_perturbation("laplace", only=["moment"])
