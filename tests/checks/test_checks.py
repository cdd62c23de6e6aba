"""What each check sees, and what it cannot see."""

import numpy as np
import pytest

from benchmarks.check_levels import NAMES, accused
from benchmarks.detector_power import RANDOM, ZEROS, bound, log_densities, measured, mixture_power
from flmarket_sim.checks import Evidence, PastRound
from flmarket_sim.errors import InputError
from flmarket_sim.plugins.registry import checks, perturbations

OWNERS = 60


def round_of(name, loss, dimension, cheat=None, seed=0):
    """A round with gradients along one direction; the first ten owners may cheat."""
    rng = np.random.default_rng(seed)
    made = perturbations.create(name)
    reference = np.where(np.arange(dimension) % 2, -1.0, 1.0)
    gradients = made.prepare(np.tile(9 * reference, (OWNERS, 1)), 1.0)
    losses, owner = np.full(OWNERS, loss), np.arange(OWNERS)
    past = made.release(gradients, losses, rng, 1.0)
    if cheat == "flip":
        gradients[:10] *= -1
    sent = made.release(gradients, losses, rng, 1.0)
    if cheat == "noisier":
        sent[:10] = made.release(gradients[:10], losses[:10] / 3, rng, 1.0)
    if cheat == "zeros":
        sent[:10] = made.release(0 * gradients[:10], losses[:10], rng, 1.0)
    if cheat == "stale":
        sent[:10] = past[:10]
    if cheat == "copied":
        sent[:10] = past[20:30] * (1 + 1e-9)
    before = (PastRound(past, owner, np.zeros(OWNERS)),)
    return Evidence(sent, losses, np.full(OWNERS, 9.0), 1.0, made, owner, before, reference)


def shares(check, evidence, **options):
    """Of cheats and of honest owners who are accused."""
    guilty = checks.create(check, **options).p_values(evidence) <= 0.05
    return guilty[:10].mean(), guilty[10:].mean()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("loss", [0.5, 8.0])
def test_no_check_accuses_more_than_its_share_of_honest_owners(name, loss):
    messages = 1200
    for check, share in accused(name, loss, 10, messages, 0.05).items():
        assert share <= 0.05 + 4 * np.sqrt(0.05 / messages), check


@pytest.mark.parametrize("check", ["aggregate-cosine", "peer-cosine", "csra"])
def test_who_flips_the_sign_is_seen_at_a_large_loss(check):
    cheats, honest = shares(check, round_of("priv-unit", 8.0, 40, "flip"))
    assert cheats >= 0.8 and honest <= 0.05


def test_signs_alone_see_a_part_of_those_who_flip_them():
    cheats, honest = shares("peer-prediction", round_of("priv-unit", 8.0, 40, "flip"))
    assert cheats >= 0.3 and honest <= 0.05


def test_a_flipped_sign_is_seen_best_with_a_reference():
    cheats, honest = shares("likelihood-ratio", round_of("priv-unit", 8.0, 40, "flip"))
    assert cheats >= 0.8 and honest <= 0.05


@pytest.mark.parametrize("name", ["laplace", "gaussian", "priv-unit", "duchi-l2"])
@pytest.mark.parametrize("check", ["variance", "csra"])
def test_more_noise_than_sold_is_seen_by_its_length(name, check):
    cheats, honest = shares(check, round_of(name, 2.0, 100, "noisier"))
    assert cheats == 1.0 and honest <= 0.16


@pytest.mark.parametrize("name", ["laplace", "gaussian", "priv-unit", "duchi-l2", "piecewise"])
@pytest.mark.parametrize("cheat", ["stale", "copied"])
def test_a_message_that_was_sent_before_is_seen(name, cheat):
    cheats, honest = shares("consistency", round_of(name, 2.0, 40, cheat))
    assert cheats == 1.0 and honest <= 0.1


def test_nothing_but_noise_is_seen_by_no_check_without_an_assumption():
    for check in ("variance", "consistency"):
        found = [shares(check, round_of("laplace", 8.0, 20, "zeros", s))[0] for s in range(10)]
        assert np.mean(found) <= 0.15


def test_with_a_known_direction_nothing_but_noise_is_seen():
    evidence = round_of("priv-unit", 8.0, 20, "zeros")
    assert shares("likelihood-ratio", evidence, alignment=1.0)[0] > 0.3
    assert shares("likelihood-ratio", evidence)[0] <= 0.3


@pytest.mark.parametrize(
    ("name", "gradient", "sent"),
    [("priv-unit", "any direction", RANDOM), ("laplace", "one coordinate", ZEROS)],
)
@pytest.mark.parametrize("loss", [0.5, 8.0])
def test_the_best_detector_is_near_the_bound(name, gradient, sent, loss):
    honest, cheats = measured(name, loss, 10, gradient, sent, 0.05, 3000)
    assert honest <= 0.05 + 4 * np.sqrt(0.05 / 3000)
    assert cheats == pytest.approx(bound(name, loss, 10, gradient, 0.05), abs=0.035)


def test_a_random_direction_under_laplace_is_found_less_often_than_its_best_test_finds_it():
    _, cheats = measured("laplace", 8.0, 10, "all coordinates alike", RANDOM, 0.05, 4000)
    best = mixture_power(8.0, 10, "all coordinates alike", 0.05, 4000)
    zeros = bound("laplace", 8.0, 10, "all coordinates alike", 0.05)
    assert cheats < best - 0.01 and best == pytest.approx(zeros, abs=0.03)


def test_a_mean_density_is_what_a_loop_over_gradients_says():
    rng = np.random.default_rng(0)
    messages, gradients, loss = rng.normal(size=(5, 3)), rng.normal(size=(4, 3)), 1.5
    slow = [
        np.log(np.mean([np.exp(-loss / 2 * np.abs(m - g).sum()) for g in gradients]))
        for m in messages
    ]
    assert log_densities(messages, gradients, loss) == pytest.approx(np.array(slow))


def test_who_cannot_be_judged_is_not_accused():
    alone = round_of("laplace", 1.0, 5)
    alone = Evidence(
        alone.messages[:1], alone.privacy_loss[:1], alone.data_size[:1], 1.0, alone.perturbation,
        alone.owner[:1],
    )  # fmt: skip
    for name in set(checks.names()) - {"variance", "csra"}:
        check = checks.create(name)
        assert np.isnan(check.scores(alone)).all() and (check.p_values(alone) == 1).all()


def test_an_alignment_is_a_share():
    with pytest.raises(InputError, match="alignment must lie between 0 and 1"):
        checks.create("peer-cosine", alignment=1.5)
