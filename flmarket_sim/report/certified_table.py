"""Gains for people from both sides: what the probe found, and what no misreport can exceed."""

from __future__ import annotations

from typing import Any

import numpy as np

from flmarket_sim.owners.valuation import family_names
from flmarket_sim.strategy.certified.certified_gain import (
    MENU,
    NETWORK,
    RULE,
    TRIVIAL,
    CertifiedGain,
)
from flmarket_sim.strategy.probe import NOTABLE, Probe

ARGUMENTS = {
    MENU: "Exact: the best point of each owner's menu, which no report of hers can move.",
    RULE: "Upper bound: the auction's payment in pieces, over all budgets and records.",
    NETWORK: "Upper bound: branch and bound over boxes of reports, through the network.",
    TRIVIAL: "Upper bound, trivial: nobody is paid more than all of the buyer's money.",
}


def summary(probe: Probe, proved: CertifiedGain) -> dict[str, Any]:
    """All numbers that the terminal shows, as data."""
    families = family_names(probe.truth.family)
    rows = {"all": np.ones(families.shape, bool)}
    rows |= {str(name): families == name for name in np.unique(families)}
    return {
        "method": proved.method,
        "nodes": int(proved.nodes.sum()),
        "by_family": {name: _row(probe, proved, chosen) for name, chosen in rows.items()},
        "upper_bound": True,
    }


def _row(probe: Probe, proved: CertifiedGain, chosen: Any) -> dict[str, float]:
    """Means over some owners; the share of those who are proved to gain at most 1 %."""
    found, upper = probe.relative_gain[chosen], proved.relative_gain[chosen]
    return {
        "found": float(found.mean()),
        "certified": float(upper.mean()),
        "gap": float((upper - found).mean()),
        "largest_gap": float((upper - found).max()),
        "at_most_one_per_cent": float((upper <= NOTABLE).mean()),
    }
