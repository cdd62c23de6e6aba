"""A probe for people: how much misreports pay, to which owners, and the best of them in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from flmarket_sim.owners.valuation import family_names
from flmarket_sim.statistics import Estimate, estimate
from flmarket_sim.strategy.probe import NOTABLE, Probe
from flmarket_sim.strategy.search import STAGES

PARTS = {"values": "valuation", "privacy_budget": "privacy budget", "data_size": "data size"}
SENTENCES = 3


def summary(probe: Probe) -> dict[str, Any]:
    """All numbers that the terminal shows, as data."""
    gain = probe.relative_gain
    families = family_names(probe.truth.family)
    false = probe.false_parts()
    notable = gain > NOTABLE
    return {
        "markets": probe.truth.shape[0],
        "owners": probe.truth.shape[1],
        "gain_over_cost": _plain(probe.mean_relative_gain()),
        "share_gaining": _plain(probe.share_gaining()),
        "median_gain_over_cost": float(np.median(gain)),
        "largest_gain_over_cost": float(gain.max()),
        "by_family": {
            str(name): {
                "owners": int((families == name).sum()),
                "gain_over_cost": _plain(_of_some(probe, families == name)),
                "share_gaining": float(notable[families == name].mean()),
            }
            for name in np.unique(families)
        },
        "false_parts": {
            part: float((mask & notable).sum() / max(1, notable.sum()))
            for part, mask in false.items()
        },
        "found_by": {
            name: int(((probe.stage == code) & notable).sum())
            for code, name in enumerate(STAGES)
            if ((probe.stage == code) & notable).any()
        },
        "lower_bound": True,
    }


def by_budget(probe: Probe, factor: Any) -> list[dict[str, Any]]:
    """Gain by budget factor (K,): a row for each distinct factor."""
    rows = []
    for value in np.unique(factor):
        chosen = factor == value
        gain = probe.relative_gain[chosen]
        rows.append(
            {
                "budget_factor": float(value),
                "markets": int(chosen.sum()),
                "gain_over_cost": _plain(
                    estimate(gain.mean(axis=1), probe.truth.take(chosen).population)
                ),
                "share_gaining": float((gain > NOTABLE).mean()),
            }
        )
    return rows


def best_lies(probe: Probe, count: int = SENTENCES) -> list[str]:
    """The largest gains over cost, one per market, as sentences that name market and owner."""
    gain = probe.relative_gain
    owner = gain.argmax(axis=1)
    order = np.argsort(-gain.max(axis=1), kind="stable")[:count]
    return [sentence(probe, int(k), int(owner[k])) for k in order if gain[k, owner[k]] > NOTABLE]


def sentence(probe: Probe, k: int, i: int) -> str:
    """One misreport: the owner, the false parts of her bid, and the gain."""
    truth = probe.truth
    family = family_names(truth.family[k, i])
    false = {part: mask[k, i] for part, mask in probe.false_parts().items()}
    claims = []
    if false["values"]:
        honest = truth.value(probe.privacy_budget, probe.data_size)[k, i]
        times = probe.values[k, i, -1] / max(honest, 1e-300)
        price = (
            "next to nothing"
            if times < 1e-3
            else "far more than anybody has"
            if times > 1e3
            else f"{times:.3g} times its value"
        )
        claims.append(f"asked {price} for all she offered")
    if false["privacy_budget"]:
        claims.append(
            f"offered a privacy budget of {probe.privacy_budget[k, i]:.3g} instead of "
            f"{truth.privacy_budget[k, i]:.3g}"
        )
    if false["data_size"]:
        claims.append(f"offered {probe.data_size[k, i]:.0f} of {truth.data_size[k, i]:.0f} records")
    what = " and ".join(claims) or "told the truth"
    return (
        f"market {k}, owner {i} ({family}, rate {truth.rate[k, i]:.2f}) {what}: "
        f"{probe.truthful_utility[k, i]:.4g} -> {probe.best_utility[k, i]:.4g}, "
        f"a gain of {probe.relative_gain[k, i]:.2f} of cost"
    )


def _of_some(probe: Probe, chosen: Any) -> Estimate:
    """Mean gain / cost over the chosen owners (K, n)."""
    return estimate(
        np.where(chosen, probe.relative_gain, 0.0).sum(axis=1),
        probe.truth.population,
        weights=chosen.sum(axis=1).astype(float),
    )


def _plain(value: Estimate) -> dict[str, float]:
    return {"mean": value.mean, "low": value.low, "high": value.high}
