"""A probe's file as part of a page: gains of misreports by budget and family, and the best."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from flmarket_sim.auctions.auction_name import AuctionName
from flmarket_sim.owners.valuation import family_names
from flmarket_sim.report.html.parts import (
    POINTS,
    Chart,
    Series,
    Source,
    Table,
    evenly,
    sampled,
    short,
)
from flmarket_sim.report.probe_tables import PARTS, best_lies, summary
from flmarket_sim.statistics import OVER_POPULATIONS, Estimate, estimate
from flmarket_sim.strategy.probe import NOTABLE, Probe
from flmarket_sim.strategy.probe_file import read_probe
from flmarket_sim.strategy.search import STAGES

LIES = 200
BINS = 8


def read(path: Path) -> Source:
    probe, facts = read_probe(path)
    numbers = summary(probe)
    auction = AuctionName.parse(str(facts.get("auction", "auction"))).label
    markets, n = probe.truth.shape
    mean, share = probe.mean_relative_gain(), probe.share_gaining()
    known = {
        "scenario": "scenario",
        "scenario_sha256": "scenario sha256",
        "seed": "seed",
        "effort": "effort",
        "auction": "auction",
    }
    world = [
        facts.get("scenario_sha256"),
        facts.get("seed"),
        markets,
        n,
        short(float(probe.budget.sum())),
    ]
    return Source(
        label=path.stem,
        kind="probe",
        title=f"How far {auction} can be lied to",
        description=f"The best lie found for each of {n} owners in {markets:,} markets of "
        f"{facts.get('scenario', 'a scenario')}.",
        notices=[],
        cards=[
            ("auction", auction),
            ("markets", f"{markets:,}"),
            ("owners a market", str(n)),
            ("mean gain / cost", short(mean.mean)),
            ("owners who gain > 1 %", short(share.mean, percent=True)),
            ("largest gain / cost", short(numbers["largest_gain_over_cost"])),
        ],
        sentences=[
            *best_lies(probe),
            "A lower bound: the best lies that were found, not the best that there are.",
        ],
        charts=[_by_budget(probe), _cloud(probe), _false_parts(probe)],
        tables=[_families(probe), _best(probe)],
        measures={"gain / cost": mean, "share of owners who gain > 1 %": share},
        settings={name: str(facts[key]) for key, name in known.items() if key in facts},
        provenance={name: str(facts[key]) for key, name in known.items() if key in facts},
        world=json.dumps(world),
        replications="markets",
        units={
            "gain / cost": {
                (k, ""): float(gain) for k, gain in enumerate(probe.relative_gain.mean(axis=1))
            },
            "share of owners who gain > 1 %": {
                (k, ""): float(gain)
                for k, gain in enumerate((probe.relative_gain > NOTABLE).mean(axis=1))
            },
        },
    )


def _by_budget(probe: Probe) -> Chart:
    """Mean gain at each budget factor, or in equal groups of markets if all factors differ."""
    distinct = np.unique(probe.factor.round(9))
    if 2 * len(distinct) <= len(probe.factor):
        groups = [np.isclose(probe.factor, value) for value in distinct]
    else:
        order = np.argsort(probe.factor, kind="stable")
        groups = [
            np.isin(np.arange(len(order)), part)
            for part in np.array_split(order, min(BINS, max(1, len(order) // 2)))
        ]
    points, labels = [], []
    for group in groups:
        part = probe.truth.take(group).population
        mean = estimate(probe.relative_gain[group].mean(axis=1), part)
        points.append([float(probe.factor[group].mean()), mean.mean, mean.low, mean.high])
        labels.append(f"{int(group.sum())} markets")
    title, x = "What lies can earn, by budget", "budget / value of everything for sale"
    return Chart(
        "gain-by-budget",
        title,
        "line",
        x,
        "mean gain / cost",
        [Series("mean gain", points, labels)],
    )


def _cloud(probe: Probe) -> Chart:
    """The gain of every owner who gains, against the budget of her market."""
    families = family_names(probe.truth.family)
    where = np.argwhere(probe.relative_gain > NOTABLE)
    sample = evenly(where.tolist(), POINTS)
    series = []
    for name in np.unique(families):
        of_family = [(k, i) for k, i in sample if families[k, i] == name]
        points = [[float(probe.factor[k]), float(probe.relative_gain[k, i])] for k, i in of_family]
        series.append(Series(str(name), points, [f"market {k}, owner {i}" for k, i in of_family]))
    sampling = sampled(len(sample), len(where), "owners")
    note = f"Owners who gain more than 1 % of their cost. {sampling}".strip()
    x = "budget / value of everything for sale"
    return Chart(
        "best-lies",
        "The best lie of every owner",
        "scatter",
        x,
        "gain / cost",
        series,
        note,
        y_log=True,
    )


def _false_parts(probe: Probe) -> Chart:
    bars = []
    notable = probe.relative_gain > NOTABLE
    for part, mask in probe.false_parts().items():
        share = _ratio(probe, mask & notable, notable)
        bars.append([PARTS[part], share.mean, share.low, share.high])
    note = "Of the lies that pay; one lie can be false in several parts."
    title, y = "What the lies are about", "share of the lies that pay"
    return Chart(
        "false-parts",
        title,
        "bars",
        "part of the bid",
        y,
        [Series("lies", bars)],
        note,
        percent=True,
    )


def _families(probe: Probe) -> Table:
    families = family_names(probe.truth.family)
    gain = probe.relative_gain
    rows: list[list[object]] = [
        ["all", gain.size, probe.mean_relative_gain(), probe.share_gaining(), float(gain.max())]
    ]
    for name in np.unique(families):
        chosen = families == name
        rows.append(
            [
                str(name),
                int(chosen.sum()),
                _ratio(probe, np.where(chosen, gain, 0.0), chosen),
                _ratio(probe, chosen & (gain > NOTABLE), chosen),
                float(gain[chosen].max()),
            ]
        )
    columns = [
        "family",
        "owners",
        "mean gain / cost",
        "share who gain > 1 %",
        "largest gain / cost",
    ]
    return Table("families", "Who gains", columns, rows, OVER_POPULATIONS)


def _ratio(probe: Probe, values: np.ndarray, chosen: np.ndarray) -> Estimate:
    """The sum of values (K, n) for each of the chosen owners."""
    sums = values.sum(axis=1).astype(float)
    return estimate(sums, probe.truth.population, chosen.sum(axis=1).astype(float))


def _best(probe: Probe) -> Table:
    gain, truth = probe.relative_gain, probe.truth
    families, false = family_names(truth.family), probe.false_parts()
    order = np.argsort(-gain, axis=None, kind="stable")[:LIES]
    rows = []
    for flat in order:
        k, i = divmod(int(flat), gain.shape[1])
        if gain[k, i] <= NOTABLE:
            break
        about = ", ".join(PARTS[part] for part, mask in false.items() if mask[k, i])
        rows.append(
            [
                k, i, str(families[k, i]), truth.rate[k, i], probe.factor[k],
                probe.truthful_utility[k, i], probe.best_utility[k, i], gain[k, i], about,
                STAGES[int(probe.stage[k, i])],
            ]
        )  # fmt: skip
    columns = [
        "market",
        "owner",
        "family",
        "rate",
        "budget factor",
        "by the truth",
        "by the lie",
        "gain / cost",
        "false",
        "found by",
    ]
    return Table(
        "best-lies",
        "The best lies",
        columns,
        rows,
        f"At most {LIES}, best first; the file has all of them.",
    )
