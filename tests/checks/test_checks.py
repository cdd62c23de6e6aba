"""What each check sees, and what it cannot see."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.check_levels import CHEATS, NAMES, accused, accused_beside_cheats
from benchmarks.detector_power import (
    RANDOM,
    WITHIN,
    ZEROS,
    bound,
    log_densities,
    measured,
    mixture_power,
)
from flmarket_sim.checks import Evidence, PastRound
from flmarket_sim.checks.random_directions import random_directions
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
    messages = 20_000  # a standard error of a share is a third of a percentage point at most
    honest, cheats = measured(name, loss, 10, gradient, sent, 0.05, messages)
    assert honest <= 0.05 + 4 * np.sqrt(0.05 / messages)
    assert cheats == pytest.approx(bound(name, loss, 10, gradient, 0.05), abs=WITHIN) and (
        WITHIN == 0.02
    )


def test_a_random_direction_under_laplace_is_found_as_often_as_its_best_test_finds_it():
    """A test against zeros finds it less often."""
    case = ("laplace", 8.0, 10, "all coordinates alike", RANDOM, 0.05, 20_000)
    honest, cheats = measured(*case)
    best = mixture_power(8.0, 10, "all coordinates alike", 0.05, 10_000)
    assert honest <= 0.05 + 4 * np.sqrt(0.05 / 20_000)
    assert cheats == pytest.approx(best, abs=WITHIN)
    assert measured(*case, noise="zeros")[1] < cheats - WITHIN


def test_the_likelihood_of_a_random_direction_is_a_mean_over_all_of_them():
    """Beside a loop over directions and coordinates, for owners who sold different losses."""
    evidence = round_of("laplace", 4.0, 5)
    losses = np.where(np.arange(OWNERS) % 2, 4.0, 0.5)
    evidence = replace(evidence, privacy_loss=losses)
    check = checks.create("likelihood-ratio", alignment=1.0, noise="random-direction", draws=500)
    found = check.scores(evidence)
    full = np.where(np.arange(5) % 2, -0.2, 0.2)
    for row in range(0, OWNERS, 7):
        scale = 2.0 / losses[row]

        def density(gradient, row=row, scale=scale):
            apart = [abs(m - g) for m, g in zip(evidence.messages[row], gradient, strict=True)]
            return np.exp(-sum(apart) / scale)

        mean = np.mean([density(direction) for direction in random_directions(5)])
        assert found[row] == pytest.approx(np.log(mean) - np.log(density(full)))
    order = np.argsort(found[losses == 4.0])
    assert (np.diff(check.p_values(evidence)[losses == 4.0][order]) <= 0).all()


def test_random_directions_take_bounded_memory_and_are_full_gradients():
    for dimension in (1, 10, 650, 20_000):
        directions = random_directions(dimension)
        assert 64 <= len(directions) <= 1000
        assert directions.size <= max(2**16, 64 * dimension)
        assert np.abs(directions).sum(axis=1) == pytest.approx(1.0)


def test_random_directions_of_a_huge_model_are_refused_before_they_are_made():
    with pytest.raises(InputError, match="at most 262,144 coordinates"):
        random_directions(10**6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": "random-direction"}, "needs alignment = 1"),
        ({"noise": "random-direction", "alignment": 0.5}, "needs alignment = 1"),
        ({"noise": "nothing"}, "noise"),
    ],
)
def test_a_likelihood_that_does_not_fit_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        checks.create("likelihood-ratio", **options)


# -- what others can do to a direction -------------------------------------------------------------


def test_the_direction_of_the_others_is_what_a_loop_over_them_says():
    evidence = round_of("laplace", 2.0, 6, seed=3)
    rng = np.random.default_rng(0)
    losses, size = rng.choice([0.5, 2.0, 8.0], OWNERS), rng.integers(1, 900, OWNERS).astype(float)
    evidence = replace(evidence, privacy_loss=losses, data_size=size)
    deviation = np.sqrt(evidence.perturbation.variance(losses, 6, 1.0))
    middle = np.median(size / deviation)
    found = checks.create("aggregate-cosine").scores(evidence)
    for me in range(OWNERS):
        total = np.zeros(6)
        for other in range(OWNERS):
            if other != me:
                message = evidence.messages[other]
                weight = min(size[other] / deviation[other], middle)
                total += weight * message / np.linalg.norm(message)
        height = evidence.messages[me] @ total / np.linalg.norm(total)
        assert found[me] == pytest.approx(-height / (deviation[me] / np.sqrt(6)))


def test_with_messages_as_long_as_sold_the_direction_is_that_of_the_weighted_sum():
    """As long as no weight is above the median."""
    evidence = round_of("priv-unit", 8.0, 6)
    unit = perturbations.create("priv-unit", length="unit")
    gradients = unit.prepare(evidence.messages, 1.0)
    sent = unit.release(gradients, evidence.privacy_loss, np.random.default_rng(0), 1.0)
    evidence = replace(evidence, messages=sent, perturbation=unit)
    sums = sent.sum(axis=0) - sent
    heights = (sent * sums).sum(axis=1) / np.linalg.norm(sums, axis=1)
    found = -checks.create("aggregate-cosine").scores(evidence)
    assert found / heights == pytest.approx(found[0] / heights[0])


@pytest.mark.parametrize("name", ["aggregate-cosine", "peer-cosine", "csra", "peer-prediction"])
def test_one_owner_cannot_have_the_others_accused(name):
    """She sends the opposite, a thousand times as long, and says that she has most records."""
    evidence = round_of("priv-unit", 16.0, 10)
    messages, size = evidence.messages.copy(), evidence.data_size.copy()
    messages[0] *= -1000.0
    size[0] *= 1000.0
    evidence = replace(evidence, messages=messages, data_size=size)
    assert (checks.create(name).p_values(evidence)[1:] <= 0.05).mean() <= 0.05


@pytest.mark.parametrize("cheats", ["20 %", "20 %, times 10"])
def test_a_fifth_who_flip_signs_do_not_have_honest_owners_accused(cheats):
    for loss in (8.0, 16.0):
        honest, _, caught = accused_beside_cheats(CHEATS[cheats], "aggregate-cosine", loss, 2)
        assert honest <= 0.05 < 0.4 < caught


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
