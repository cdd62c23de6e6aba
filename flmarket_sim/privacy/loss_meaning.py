"""What a privacy loss means, and from where on it is no longer called private.

A release with privacy loss e changes the odds of any guess about an owner's records by a factor of
at most exp(e). Somebody who thinks that two sets of records are equally likely can become at most
exp(e) / (1 + exp(e)) sure of one: 73 % at e = 1, and 99.995 % at e = 10.
"""

from __future__ import annotations

import math

# "How to DP-fy ML" (Ponomareva et al., JAIR 77, 2023) calls e <= 1 strong, e <= 10
# reasonable, and everything above weak to no formal privacy; the guide of TensorFlow Privacy wants
# e below 10 too. Both mean all that is ever released about somebody.
CUSTOMARY_LIMIT = 10.0
LARGEST = 700.0  # exp of more overflows


def odds_factor(privacy_loss: float) -> str:
    """The largest factor by which a loss changes the odds of a guess, as text."""
    known = f" = {math.exp(privacy_loss):.2g}" if privacy_loss <= LARGEST else ""
    return f"exp({privacy_loss:.3g}){known}"


def beyond_custom(privacy_loss: float) -> str:
    """The sentences about a loss above CUSTOMARY_LIMIT."""
    return (
        f"The odds of a guess about her records can then change by a factor of "
        f"{odds_factor(privacy_loss)}, which makes a toss-up practically certain. Above e = "
        f"{CUSTOMARY_LIMIT:g} this is customarily called weak privacy or none."
    )
