"""How many honest owners each check accuses: `python -m benchmarks.check_levels`.

It writes benchmarks/check_levels.md. `--messages N` (10^5) is the number of honest messages for
every perturbation and privacy loss, `--dimension D` (10) their coordinates, and `--level` (0.05)
the share that a check may accuse. It stops with an error if a check accuses a larger share.

`--non-iid` measures something else: markets that learn, of honest owners whose records have their
own mixture of classes. There gradients point away from each other, so the checks with a direction
accuse more than they say. It writes benchmarks/check_levels_non_iid.md; `--seeds N` (10) is the
number of markets for every cell.

`--cheats` measures markets of alike owners, some of whom flip signs: how many honest messages the
checks with a direction then accuse, and how many of the cheats'. It writes
benchmarks/check_levels_cheats.md, with `--seeds` as before.

Honest gradients are of six sorts, which take turns by rounds of 200 owners. They keep what the
checks with a direction assume: no gradient points away from the reference or the others' sum.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.checks.check import LEVEL, Evidence, PastRound
from flmarket_sim.market.simulation import rounds_and_world
from flmarket_sim.perturbation.perturbation import Perturbation
from flmarket_sim.plugins.registry import checks, perturbations
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.scenario_file import build_scenario

Floats = NDArray[np.float64]
NAMES = ("priv-unit", "gaussian", "duchi-l2", "proj-unit", "laplace", "piecewise")
OPTIONS = {"proj-unit": {"size": 5}}  # fewer than the dimension: with a projection
LOSSES = (0.5, 1.0, 2.0, 8.0)
OWNERS, PAST = 200, 2
PARTITIONS: tuple[dict[str, Any], ...] = ({"name": "iid"}, {"name": "dirichlet", "alpha": 0.1})
LARGE_LOSSES = (2.0, 8.0, 16.0)
LITTLE_NOISE = (8.0, 16.0)
BIDDERS, ROUNDS = 20, 12
WITH_A_DIRECTION = (
    "aggregate-cosine",
    "peer-cosine",
    "csra",
    "peer-prediction",
    "likelihood-ratio",
)
CHEATS: dict[str, list[dict[str, Any]]] = {
    "nobody": [],
    "20 %": [{"name": "sign-flip", "share": 0.2}],
    "20 %, times 10": [{"name": "sign-flip", "share": 0.2, "scale": 10.0}],
    "40 %": [{"name": "sign-flip", "share": 0.4}],
}
COMMAND = "python -m benchmarks.check_levels"


def gradients(sort: int, reference: Floats, rng: np.random.Generator) -> Floats:
    """(n, D) raw gradients: alike, apart, short, none, across the reference, along an axis."""
    dimension = len(reference)
    noise = rng.normal(size=(OWNERS, dimension))
    if sort == 0:
        return 100.0 * (reference + 0.3 * noise * np.sign(noise * reference))
    if sort == 1:
        return 100.0 * noise * np.where(noise @ reference < 0, -1.0, 1.0)[:, None]
    if sort == 2:
        return 1e-3 * (reference + 0.1 * np.abs(noise) * np.sign(reference))
    if sort == 3:
        return np.zeros((OWNERS, dimension))
    if sort == 4:
        across = noise[0] - (noise[0] @ reference) / (reference @ reference) * reference
        return np.tile(100.0 * across, (OWNERS, 1))
    axis = np.eye(dimension)[rng.integers(dimension)] * np.sign(reference)
    return np.tile(100.0 * axis, (OWNERS, 1))


def rounds(
    made: Perturbation, loss: float, dimension: int, count: int, seed: int = 0
) -> Iterator[Evidence]:
    """Rounds of honest owners with two rounds before, which had the same gradients."""
    rng = np.random.default_rng([seed, dimension, int(8 * loss)])
    losses, owner = np.full(OWNERS, loss), np.arange(OWNERS)
    for number in range(count):
        reference = rng.normal(size=dimension)
        prepared = made.prepare(gradients(number % 6, reference, rng), 1.0)
        past = tuple(
            PastRound(made.release(prepared, losses, rng, 1.0), owner, np.zeros(OWNERS))
            for _ in range(PAST)
        )
        sent = made.release(prepared, losses, rng, 1.0)
        size = np.full(OWNERS, 10.0)
        yield Evidence(sent, losses, size, 1.0, made, owner, past, reference)


def accused(
    name: str, loss: float, dimension: int, messages: int, level: float
) -> dict[str, float]:
    """The share of honest owners whom each check accuses."""
    made = perturbations.create(name, **OPTIONS.get(name, {}))
    known = {check: checks.create(check) for check in checks.names()}
    count = -(-messages // OWNERS)
    found = dict.fromkeys(known, 0)
    for evidence in rounds(made, loss, dimension, count):
        for check, it in known.items():
            found[check] += int((it.p_values(evidence) <= level).sum())
    return {check: number / (count * OWNERS) for check, number in found.items()}


def table_of(check: str) -> dict[str, Any]:
    """A table [check] of which nothing follows: it only writes down what it thinks."""
    table: dict[str, Any] = {"name": check, "consequences": []}
    return table | ({"reference": 200} if check == "likelihood-ratio" else {})


def market(partition: dict[str, Any], check: str, loss: float, seed: int) -> Scenario:
    """A market of honest owners who learn."""
    return build_scenario(
        {
            "seed": seed,
            "rounds": ROUNDS,
            "data": {"name": "synthetic", "records": 4000, "features": 16, "classes": 4},
            "owners": {
                "count": BIDDERS,
                "partition": partition,
                "privacy_budget": loss,
                "families": ["linear"],
            },
            "market": {"bidders": BIDDERS},
            "budget": {"factor": 5.0},
            "perturbation": {"name": "priv-unit", "length": "unit"},
            "model": {"name": "logistic", "evaluate_every": ROUNDS},
            "check": table_of(check),
        }
    )


def framing_market(
    cheats: list[dict[str, Any]], check: str, loss: float, seed: int, rounds: int = ROUNDS
) -> Scenario:
    """A market of few coordinates, where owners differ by their numbers of records alone."""
    return build_scenario(
        {
            "seed": seed,
            "rounds": rounds,
            "data": {
                "name": "synthetic",
                "records": 4000,
                "features": 4,
                "classes": 2,
                "test_records": 50,
            },
            "owners": {"count": BIDDERS, "cheats": cheats, "privacy_budget": loss},
            "market": {"bidders": BIDDERS},
            "budget": {"factor": [1.5, 2.0]},
            "auction": {"name": "all-in-critical"},
            "perturbation": {"name": "priv-unit", "length": "unit"},
            "model": {"name": "logistic", "evaluate_every": rounds},
            "check": table_of(check),
        }
    )


def accused_beside_cheats(
    cheats: list[dict[str, Any]], check: str, loss: float, seeds: int
) -> tuple[float, float, float]:
    """The share of honest messages that a check accuses, the largest such share in one market, and
    the share of the cheats' messages; NaN without any."""
    guilty, judged = np.zeros((seeds, 2)), np.zeros((seeds, 2))
    for market, seed in enumerate(range(10, 10 + seeds)):
        _, world = rounds_and_world(framing_market(cheats, check, loss, seed))
        cheating = np.zeros(BIDDERS, bool) if world.cheating is None else world.cheating.code >= 0
        for of, who in enumerate((~cheating, cheating)):
            guilty[market, of] = world.ledger.accused[who].sum()
            judged[market, of] = world.ledger.judged[who].sum()
    with np.errstate(invalid="ignore"):
        honest, caught = guilty.sum(axis=0) / judged.sum(axis=0)
        return float(honest), float((guilty[:, 0] / judged[:, 0]).max()), float(caught)


def write_cheats(seeds: int) -> None:
    """The table of markets with owners who flip signs."""
    lines = [
        "# Checks: the share of honest owners whom each accuses beside cheats",
        "",
        f"Written by `{COMMAND} --cheats --seeds {seeds}`: percent of the honest messages of",
        f"{seeds} markets with {BIDDERS} owners and {ROUNDS} rounds each, under PrivUnit with unit",
        f"gradients of 10 coordinates, accused at a level of {100 * LEVEL:g} %; in brackets, the",
        "largest percentage in one market; behind it, percent of the messages of owners who flip",
        "signs. Owners' records are alike, and their numbers differ.",
        "",
        f"| who flips signs | e | {' | '.join(WITH_A_DIRECTION)} |",
        f"|---|---|{'---|' * len(WITH_A_DIRECTION)}",
    ]
    for label, cheats in CHEATS.items():
        for loss in LITTLE_NOISE:
            cells = []
            for check in WITH_A_DIRECTION:
                honest, most, caught = accused_beside_cheats(cheats, check, loss, seeds)
                cell = f"{100 * honest:.1f} ({100 * most:.1f})"
                cells.append(cell + (f"; {100 * caught:.0f}" if cheats else ""))
            lines.append(f"| {label} | {loss:g} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    Path(__file__).with_name("check_levels_cheats.md").write_text("\n".join(lines) + "\n")


def accused_in_markets(
    partition: dict[str, Any], check: str, loss: float, seeds: int
) -> tuple[int, int]:
    """How many honest messages a check accuses, and how many it judges."""
    guilty = judged = 0
    for seed in range(10, 10 + seeds):
        _, world = rounds_and_world(market(partition, check, loss, seed))
        guilty += int(world.ledger.accused.sum())
        judged += int(world.ledger.judged.sum())
    return guilty, judged


def write_non_iid(seeds: int) -> None:
    """The table of markets that learn."""
    names = checks.names()
    lines = [
        "# Checks: the share of honest owners whom each accuses, in markets that learn",
        "",
        f"Written by `{COMMAND} --non-iid --seeds {seeds}`: percent of the messages of",
        f"{seeds} markets with {BIDDERS} honest owners and {ROUNDS} rounds each, under PrivUnit",
        f"with unit gradients, accused at a level of {100 * LEVEL:g} %. `dirichlet` has owners of",
        "about one class each. Their gradients point away from each other's, against what the",
        "checks with a direction assume: aggregate-cosine, csra, likelihood-ratio, peer-cosine.",
        "",
        f"| owners | e | {' | '.join(names)} |",
        f"|---|---|{'---|' * len(names)}",
    ]
    for partition in PARTITIONS:
        for loss in LARGE_LOSSES:
            cells = []
            for check in names:
                guilty, judged = accused_in_markets(partition, check, loss, seeds)
                cells.append(f"{100 * guilty / judged:.2f}" if judged else "")
            lines.append(f"| {partition['name']} | {loss:g} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    path = Path(__file__).with_name("check_levels_non_iid.md")
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--non-iid", action="store_true")
    parser.add_argument("--cheats", action="store_true")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=10)
    parser.add_argument("--level", type=float, default=LEVEL)
    chosen = parser.parse_args()
    if chosen.non_iid:
        write_non_iid(chosen.seeds)
        return
    if chosen.cheats:
        write_cheats(chosen.seeds)
        return
    names = checks.names()
    lines = [
        "# Checks: the share of honest owners whom each accuses",
        "",
        f"Written by `{COMMAND} --messages {chosen.messages} --dimension {chosen.dimension}",
        f"--level {chosen.level:g}`. A row is about {chosen.messages:,} honest messages of",
        f"{chosen.dimension} coordinates; numbers are percent. Each may be "
        f"{100 * chosen.level:g} at most.",
        "",
        f"| perturbation | e | {' | '.join(names)} |",
        f"|---|---|{'---|' * len(names)}",
    ]
    worst = 0.0
    for name in NAMES:
        for loss in LOSSES:
            share = accused(name, loss, chosen.dimension, chosen.messages, chosen.level)
            worst = max(worst, *share.values())
            row = f"| {name} | {loss:g} | "
            row += " | ".join(f"{100 * share[check]:.2f}" for check in names) + " |"
            print(row, flush=True)
            lines.append(row)
            Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n")
    lines += ["", f"The largest share is {100 * worst:.2f} %."]
    if worst > chosen.level:
        sys.exit(f"a check accuses {100 * worst:.2f} % of honest owners")
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
