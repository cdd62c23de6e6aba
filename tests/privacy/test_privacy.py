import inspect

import numpy as np
import pytest
from scipy.stats import beta

from flmarket_sim import privacy
from flmarket_sim.privacy.privacy_audit import released
from flmarket_sim.randomness import Purpose, Streams


def test_clipping_is_joint_and_never_leaves_more_than_the_threshold():
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(200, 50)) * rng.choice([1e-6, 1.0, 1e6], (200, 1))
    clipped, norms = privacy.clip_l1(gradients, 0.7)
    assert norms == pytest.approx(np.abs(gradients).sum(axis=1))
    assert (np.abs(clipped).sum(axis=1) <= 0.7).all()
    small = norms <= 0.69
    assert (clipped[small] == gradients[small]).all()
    direction = gradients[~small] / norms[~small, None]
    assert clipped[~small] == pytest.approx(0.7 * direction, rel=1e-6)


def test_float32_gradients_are_clipped_in_float64():
    clipped, _ = privacy.clip_l1(np.full((1, 10**6), 0.1, np.float32), 1.0)
    assert clipped.dtype == np.float64 and np.abs(clipped).sum() <= 1.0


def test_noise_has_scale_two_clip_over_the_loss_on_every_coordinate():
    unit = np.stack([privacy.unit_noise(Streams(0), 20, owner, 0, 0) for owner in range(5000)])
    noisy = privacy.perturb(np.zeros((5000, 20)), unit, 0.5, clip=1.5)
    assert privacy.noise_scale(0.5, 1.5) == 6.0
    assert np.abs(noisy).mean(axis=0) == pytest.approx(6.0, rel=0.1)
    assert noisy.var() == pytest.approx(2 * 6.0**2, rel=0.05)


def test_unit_noise_depends_on_owner_round_and_buyer_only():
    base = privacy.unit_noise(Streams(1), 8, 3, 4, 0)
    assert (privacy.unit_noise(Streams(1), 8, 3, 4, 0) == base).all()
    others = [privacy.unit_noise(Streams(1), 8, *key) for key in ((2, 4, 0), (3, 5, 0), (3, 4, 1))]
    assert all((other != base).all() for other in others)


@pytest.mark.parametrize("loss", [0.5, 2.0])
def test_the_audit_passes_the_mechanism_and_comes_close_to_its_claim(loss):
    result = privacy.audit(loss, clip=2.0, draws=10_000)
    assert result.passed and 0.75 * loss < result.lower_bound <= loss
    assert result.lower_bound == pytest.approx(result.reach, abs=0.1)


def test_the_audit_catches_half_the_noise_with_ten_thousand_draws():
    def half_the_noise(gradients, loss, clip, rng):
        return released(gradients, 2 * loss, clip, rng)

    assert not privacy.audit(1.0, draws=10_000, mechanism=half_the_noise).passed


def test_the_audit_catches_a_forgotten_clipping():
    def unclipped(gradients, loss, clip, rng):
        return 3 * gradients + rng.laplace(size=gradients.shape) * 2 * clip / loss

    assert not privacy.audit(1.0, draws=10_000, mechanism=unclipped).passed


def test_every_coordinate_gets_its_unit_noise_times_the_scale_of_its_owner():
    unit = np.array([[1.0, -2.0], [0.5, 0.0]])
    clipped = np.array([[0.1, 0.2], [0.3, -0.4]])
    assert privacy.perturb(clipped, unit, np.array([0.5, 2.0]), clip=1.5) == pytest.approx(
        np.array([[0.1 + 6.0, 0.2 - 12.0], [0.3 + 0.75, -0.4]])
    )
    assert privacy.perturb(clipped[0], unit[0], 0.5, clip=1.5) == pytest.approx([6.1, -11.8])


def test_a_scale_is_float64_whatever_the_loss_is_stored_in():
    assert privacy.noise_scale(np.array([0.1], np.float32), 1.0).dtype == np.float64


def test_noise_has_streams_of_its_own():
    own = Streams(1).generator(Purpose.NOISE, 3, 4, 0).laplace(size=8)
    assert (privacy.unit_noise(Streams(1), 8, 3, 4, 0) == own).all()


def test_an_audit_can_be_repeated_and_says_how_it_was_done():
    result = privacy.audit(1.0, draws=5_000)
    assert result == privacy.audit(1.0, clip=1.0, draws=5_000, confidence=0.999, seed=0)
    assert result != privacy.audit(1.0, draws=5_000, seed=1)
    assert (result.claimed, result.draws, result.confidence) == (1.0, 5_000, 0.999)
    assert inspect.signature(privacy.audit).parameters["draws"].default == 100_000


@pytest.mark.parametrize(
    ("plus", "minus"), [(70, 20), (100, 1), (100, 0), (3, 2), (0, 5), (0, 0), (100, 100), (20, 70)]
)
def test_the_audit_is_the_ratio_of_two_clopper_pearson_bounds(plus, minus):
    """A mechanism that hits exactly so often; a hit lies on the threshold itself."""

    def counted(gradients, loss, clip, rng):
        sign = np.sign(gradients[0, 0])
        assert (sign * gradients[:, 0] > clip).all() and (gradients[:, 1:] == 0).all()
        hits = np.arange(len(gradients)) < (plus if sign > 0 else minus)
        return np.where(hits, clip, clip - 1e-9)[:, None] * np.ones(2)

    for confidence in (0.999, 0.9):
        risk = (1 - confidence) / 2
        least = beta.ppf(risk, plus, 101 - plus) if plus else 0.0
        most = beta.ppf(1 - risk, minus + 1, 100 - minus) if minus < 100 else 1.0
        expected = max(np.log(least / most), 0.0) if plus else 0.0
        found = privacy.audit(1.0, clip=3.0, draws=100, confidence=confidence, mechanism=counted)
        assert found.lower_bound == pytest.approx(expected, rel=1e-9)
