"""What `priv-unit` costs beside `laplace`: a large release, and a run of the paper's market.

`python -m benchmarks.releases [REPEATS]`. Both are timed in turn in one process, and the ratio of
the best times counts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import flmarket_sim as fm
from flmarket_sim.market.simulation import rounds_only
from flmarket_sim.scenario.scenario_file import load_scenario

SCENARIO = Path(__file__).parents[1] / "scenarios/paper/iid.toml"
GRADIENTS, COORDINATES = 1_000, 100_000
MOST_RELEASE, MOST_RUN = 2.0, 1.3


def best_times(works: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The least seconds of each work; all of them have their turn before the next repeat."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(repeats):
        for name, work in works.items():
            began = time.perf_counter()
            work()
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def large_release(name: str) -> Callable[[], object]:
    perturbation = fm.perturbation.create(name)
    rng = np.random.default_rng(0)
    prepared = perturbation.prepare(rng.normal(size=(GRADIENTS, COORDINATES)))
    losses = rng.uniform(0.5, 2.0, GRADIENTS)
    return lambda: perturbation.release(prepared, losses, np.random.default_rng(1))


def market_run(name: str) -> Callable[[], object]:
    scenario = load_scenario(SCENARIO, [f"perturbation={name}", "aggregation.error=vector"])
    data = fm.load_data(scenario)
    return lambda: rounds_only(scenario, data)


def report(what: str, best: dict[str, float], most: float) -> bool:
    ratio = best["priv-unit"] / best["laplace"]
    verdict = "within" if ratio <= most else "ABOVE"
    print(
        f"{what}: laplace {best['laplace']:.3f} s, priv-unit {best['priv-unit']:.3f} s, "
        f"ratio {ratio:.2f} ({verdict} {most:g})"
    )
    return ratio <= most


def main(repeats: int) -> bool:
    names = ("laplace", "priv-unit")
    kept = [
        report(what, best_times({name: make(name) for name in names}, repeats), most)
        for what, make, most in (
            (
                f"{GRADIENTS:,} gradients of {COORDINATES:,} coordinates",
                large_release,
                MOST_RELEASE,
            ),
            ("a run of the paper's IID market", market_run, MOST_RUN),
        )
    ]
    return all(kept)


if __name__ == "__main__":
    sys.exit(not main(int(sys.argv[1]) if len(sys.argv) > 1 else 3))
