"""The contract of checks: what a broker may suspect from what she sees alone.

A broker receives released vectors and knows what each was sold as. She sees no gradient. A check
turns this evidence into a suspicion for each owner, and into the chance that an honest owner looks
at least as suspicious.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.perturbation.perturbation import Perturbation

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
LEVEL = 0.05  # the share of honest owners whom a check may accuse, unless a market says otherwise


@dataclass(frozen=True)
class PastRound:
    """What a broker keeps of an earlier round of the same buyer.

    messages  (m, D) the released vectors of that round
    owner     (m,) the number of each owner, as in `Evidence`
    scores    (m,) the suspicions of that round; NaN where there was none
    """

    messages: Floats
    owner: Integers
    scores: Floats


@dataclass(frozen=True)
class Evidence:
    """Everything that a broker sees of one round; rows are the n sellers whose messages arrived.

    messages      (n, D) the released vectors, exactly as they were received
    privacy_loss  (n,) what each owner sold, above 0
    data_size     (n,) the number of records that each owner sold
    clip          the threshold of the scenario's clipping
    perturbation  how honest owners make gradients private: public knowledge
    owner         (n,) the number of each owner, the same in every round
    history       earlier rounds of this buyer, oldest first, of bounded length
    reference     (D,) a direction that the broker knows herself, such as the gradient of the public
                  model on records of her own; None if she has none
    """

    messages: Floats
    privacy_loss: Floats
    data_size: Floats
    clip: float
    perturbation: Perturbation
    owner: Integers
    history: Sequence[PastRound] = ()
    reference: Floats | None = None


class Check(Protocol):
    """A suspicion of each seller. Its options are constructor arguments; it keeps no state.

    A check reads nothing but its evidence, which it leaves alone. It is deterministic: one that
    needs chance draws from a generator with a seed of its own. An owner is accused when her
    p-value is at most the market's level (`LEVEL` by default). One that judges nobody without a
    reference or without a history may say so: `needs = ("reference",)` or `("history",)`; a
    scenario that does not give it is refused.
    """

    name: str

    def scores(self, evidence: Evidence) -> Floats:
        """(n,) suspicions: larger is more suspicious, NaN cannot be judged."""
        ...

    def p_values(self, evidence: Evidence) -> Floats:
        """(n,) at least the chance that an honest owner has this score or a larger one.

        It lies in [0, 1], and falls as the score rises if all else is equal. Who cannot be judged
        has 1.
        """
        ...
