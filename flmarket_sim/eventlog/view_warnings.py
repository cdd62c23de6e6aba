"""What a view cannot keep: warnings for the person who makes it, which are no part of the view."""

from __future__ import annotations

import os

from flmarket_sim.eventlog.reader import read_run

SMALL_SEED = 2**32  # all smaller ones can be tried


def view_warnings(run: str | os.PathLike[str]) -> list[str]:
    """Why a view of this run may tell more than it has; empty if there is no reason."""
    info = read_run(run)
    seed = info.get("seed")
    if info.get("repeatable") is False or not isinstance(seed, int) or seed >= SMALL_SEED:
        return []
    return [
        f"the seed of this run is {seed}, and whoever knows or guesses the scenario can try all "
        "seeds below 2^32: the one whose market has the bids of the view gives all true types. If "
        "the view is for others, run the market again with a seed of 63 random bits (`python -c "
        '"import secrets; print(secrets.randbits(63))"` draws one for `--set seed=`), or with '
        "hardened noise, which takes no seed"
    ]
