"""Named random streams: the key says what a number is for, not when it is drawn.

A stream is `Philox(SeedSequence(seed, spawn_key=(purpose, *key)))`. Policies are never in the key.
So two mechanisms meet the same owners, delays and unit noise, and comparisons are paired.

Numbers that every bidder needs in every round come from `per_owner`. It cuts the owners into blocks
of `BLOCK`; each block has one stream, and an owner's numbers are her row of it. Her numbers depend
on purpose, round and her own number only, and a round of many owners needs few streams.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
BLOCK = 1024


class Purpose(IntEnum):
    """What a stream is for. Numbers are part of the format: never reuse or reorder one."""

    DATA = 1
    PARTITION = 2
    TYPES = 3
    SPEED = 4
    BIDDERS = 5
    BUDGET = 6
    WORLD = 7  # delays, absence and dropouts of an owner in a round
    AUCTION = 8
    NOISE = 9
    MODEL = 10
    PROFILES = 11
    SEARCH = 12
    BEHAVIOUR = 13  # which owners behave how
    REPORT = 14  # what their behaviours draw in a round
    POPULATIONS = 15  # seeds of the populations that a sample of markets is drawn from
    BATCH = 16  # the records of an owner's local steps in a round of a buyer
    SOLD = 17  # which records an owner sells on who sells on a part of them
    CHEATS = 18  # which owners cheat after the sale
    CHEATING = 19  # what their cheats draw in a round
    REFERENCE = 20  # the records that the broker has herself
    CONTRIBUTION = 21  # orders of sellers, for what each of them contributes
    VALIDATION = 22  # the records on which contributions to a model are judged


class Streams:
    """All random streams of one run."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def generator(self, purpose: Purpose, *key: int) -> np.random.Generator:
        sequence = np.random.SeedSequence(self.seed, spawn_key=(int(purpose), *key))
        return np.random.Generator(np.random.Philox(sequence))

    def per_owner(
        self, purpose: Purpose, owners: NDArray[np.int64], width: int, *key: int
    ) -> Floats:
        """(len(owners), width) uniform numbers in [0, 1): each owner's for this purpose and key."""
        blocks, inverse = np.unique(owners // BLOCK, return_inverse=True)
        table = np.empty((len(blocks), BLOCK, width))
        for row, block in enumerate(blocks.tolist()):
            self.generator(purpose, *key, block).random(out=table[row])
        return np.asarray(table[inverse, owners % BLOCK])
