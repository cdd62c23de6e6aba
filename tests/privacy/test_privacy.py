"""Gradients leave their owners prepared, with randomness of their own streams."""

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import ContractError, InputError
from flmarket_sim.perturbation.laplace import Laplace
from flmarket_sim.privacy import Release, create_noise
from flmarket_sim.randomness import Purpose, Streams

NAMES = fm.perturbation.names()


def leaving(perturbation, raw, losses, clip=0.7, seed=1):
    noise = create_noise("simulation", perturbation, clip, Streams(seed))
    return Release(raw.copy(), losses, perturbation, clip, noise)


@pytest.mark.parametrize("name", NAMES)
def test_a_row_leaves_as_its_owners_stream_perturbs_it(name):
    made = fm.perturbation.create(name)
    raw = np.random.default_rng(0).normal(size=(3, 6)) * 10
    release = leaving(made, raw, [0.5, 1.0, 2.0])
    stream = Streams(1).generator(Purpose.NOISE, 17, 4, 0)
    expected = made.release(made.prepare(raw, 0.7)[1:2], np.array([1.0]), stream, 0.7)[0]
    assert release.leave(1, 17, 4, 0).tobytes() == expected.tobytes()
    others = [release.leave(1, *key) for key in ((16, 4, 0), (17, 5, 0), (17, 4, 1))]
    assert all((other != expected).any() for other in others)


def test_laplace_noise_is_that_of_former_versions():
    raw = np.array([[3.0, -1.0, 0.5]])
    unit = Streams(1).generator(Purpose.NOISE, 3, 4, 0).laplace(size=3)
    clipped = Laplace().prepare(raw, 1.5)[0]
    sent = leaving(Laplace(), raw, [0.5], 1.5).leave(0, 3, 4, 0)
    assert sent.tobytes() == (clipped + unit * (2 * 1.5 / 0.5)).tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_prepared_in_the_memory_that_they_had(name):
    made = fm.perturbation.create(name)
    raw = np.random.default_rng(0).normal(size=(300, 6)) * 10
    noise = create_noise("simulation", made, 0.7, Streams(0))
    release = Release(raw, [1.0] * 300, made, 0.7, noise)
    assert release.prepared is raw


class Untidy(Laplace):
    """A plug-in that does not think of nan."""

    name = "untidy"

    def prepare(self, gradients, clip=1.0):
        length = np.abs(gradients).sum(axis=1)
        return (
            gradients
            * np.where(length > clip, 0.99 * clip / np.maximum(length, clip), 1.0)[:, None]
        )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "made",
    [
        *(fm.perturbation.create(name) for name in NAMES),
        fm.perturbation.create("priv-unit", length="unit"),
        fm.perturbation.create("proj-unit", size=3, length="unit"),
        Untidy(),
    ],
    ids=lambda made: f"{made.name}-{made.domain}",
)
def test_what_is_not_finite_leaves_as_the_release_of_zeros(made):
    """So every such gradient is one input of the perturbation, as private as any other."""
    fine = np.random.default_rng(0).normal(size=(1, 6))
    bad = np.concatenate([fine, fine, fine, np.full((1, 6), np.inf), fine])
    bad[0, 2], bad[1, 5], bad[2, :2] = np.nan, -np.inf, (np.nan, 1e308)
    release = leaving(made, bad, [1.0] * 5)
    zeros = leaving(made, np.zeros((1, 6)), [1.0]).leave(0, 17, 4, 0)
    for row in range(4):
        assert release.leave(row, 17, 4, 0).tobytes() == zeros.tobytes()
    alone = leaving(made, fine, [1.0]).leave(0, 17, 4, 0)
    assert release.leave(4, 17, 4, 0).tobytes() == alone.tobytes()
    assert release.finite.tolist() == [False] * 4 + [True]
    assert (release.norms[:4] == np.inf).all() and np.isfinite(release.norms[4])


class Broken(Laplace):
    wrong = np.nan

    def release(self, gradients, privacy_loss, rng, clip=1.0):
        return np.full(gradients.shape, self.wrong)


class Short(Laplace):
    def release(self, gradients, privacy_loss, rng, clip=1.0):
        return np.zeros((1, 1))


@pytest.mark.parametrize("broken", [Broken, Short])
def test_what_is_no_gradient_does_not_leave(broken):
    with pytest.raises(ContractError, match="'laplace' releases gradients that are not finite"):
        leaving(broken(), np.ones((1, 2)), [1.0]).leave(0, 0, 0, 0)


def test_hardened_noise_exists_for_two_perturbations_only():
    with pytest.raises(InputError, match="'laplace' and 'duchi-l2' only, not for 'duchi-linf'"):
        create_noise("hardened", fm.perturbation.create("duchi-linf"), 1.0, Streams(0))
