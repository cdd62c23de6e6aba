"""What follows for an owner whom a check accuses, in money, and what that is worth to the others.

A p-value is the chance that an honest message looks at least as suspicious, so it is uniform for
honest owners, or larger (docs/cheating.md). With a level a, at most the share a of honest messages
is accused; an honest owner counts on exactly that risk.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Consequences:
    """The rules of a market for accused owners, which are public.

    level       a: who has a p-value of at most this is accused
    kinds       what follows, by the names of a scenario's [check] consequences
    deposit     what is lost, in payments
    exclusion   for how many rounds
    memory      the weight of the latest verdict in a reputation
    least       no reputation falls below it
    """

    level: float
    kinds: frozenset[str]
    deposit: float = 1.0
    exclusion: int = 10
    memory: float = 0.3
    least: float = 0.1

    def accused(self, p_values: Floats) -> Flags:
        """(n,) whom the broker accuses."""
        return np.asarray(p_values <= self.level)

    def paid_share(self, p_values: Floats) -> Floats:
        """(n,) the share of her payment that an owner gets."""
        if "no-payment" in self.kinds:
            share: Floats = np.zeros_like(p_values)
        elif "partial-payment" in self.kinds:
            share = p_values / self.level
        else:
            share = np.ones_like(p_values)
        return np.where(self.accused(p_values), share, 1.0)

    def forfeited(self, p_values: Floats, payment: Floats) -> Floats:
        """(n,) the deposits that owners lose; their payments were to be `payment` (n,)."""
        lost = self.accused(p_values) & ("deposit" in self.kinds)
        return np.where(lost, self.deposit * payment, 0.0)

    def discarded(self, p_values: Floats) -> Flags:
        """(n,) whose messages are not aggregated."""
        return self.accused(p_values) & ("discard" in self.kinds)

    def reputation(self, before: Floats, p_values: Floats) -> Floats:
        """(n,) after a verdict."""
        kept = (1.0 - self.memory) * before + self.memory * ~self.accused(p_values)
        return np.maximum(kept, self.least)

    def expected(self, payment: Floats, accused: Floats | float, partial: Floats | float) -> Floats:
        """(n,) what owners count on who are accused with these chances.

        `partial` is what they would get of their payments under partial payment when accused.
        """
        share: Floats | float = 1.0
        if "no-payment" in self.kinds:
            share = 0.0
        elif "partial-payment" in self.kinds:
            share = partial
        lost = self.deposit if "deposit" in self.kinds else 0.0
        return np.asarray(payment * (1.0 - accused * (1.0 - share + lost)))

    def honest(self, payment: Floats) -> Floats:
        """(n,) what honest owners count on: they are accused with the chance a, and then their
        p-values are uniform below it. Owners who are less often accused get more."""
        return self.expected(payment, self.level, 0.5)
