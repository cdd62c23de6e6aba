import numpy as np

from flmarket_sim.randomness import BLOCK, Purpose, Streams


def test_an_owners_numbers_do_not_depend_on_who_else_is_asked():
    streams = Streams(5)
    owners = np.array([3, BLOCK + 1, 7, 5 * BLOCK])
    together = streams.per_owner(Purpose.WORLD, owners, 4, 0, 9)
    for row, owner in enumerate(owners):
        assert (
            streams.per_owner(Purpose.WORLD, np.array([owner]), 4, 0, 9)[0] == together[row]
        ).all()


def test_numbers_differ_by_seed_purpose_owner_and_round():
    owner = np.array([3])
    draws = [
        Streams(seed).per_owner(purpose, owner + shift, 1, 0, number)[0, 0]
        for seed in (0, 1)
        for purpose in (Purpose.WORLD, Purpose.NOISE)
        for shift in (0, 1)
        for number in (0, 1)
    ]
    assert len(set(draws)) == 16


def test_a_stream_is_philox_keyed_by_its_purpose():
    sequence = np.random.SeedSequence(4, spawn_key=(int(Purpose.NOISE), 17, 3))
    expected = np.random.Generator(np.random.Philox(sequence)).random(5)
    assert (Streams(4).generator(Purpose.NOISE, 17, 3).random(5) == expected).all()
