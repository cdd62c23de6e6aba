"""One measurement of `scale`, in a separate process.

`python -m benchmarks.scale_case JSON LIMIT` prints numbers as JSON. Seconds are processor time of
all threads, which a busy machine changes less than wall time.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import flmarket_sim as fm
from benchmarks import former
from benchmarks.timing import peak_memory
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.market import simulation
from flmarket_sim.plugins.registry import datasets
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.scenario_file import build_scenario


def market(table: dict[str, Any]) -> dict[str, float]:
    """`flmarket run` with its log; data is loaded before the clock starts, and is in the memory."""
    scenario = build_scenario(table)
    if ":" in scenario.model.name:
        import torch  # imports, also those of the first gradients, are not measured

        torch.func.vmap(torch.func.grad(lambda x: (x * x).sum()))(torch.zeros(2, 3))
    began_with = peak_memory()
    data = _data(scenario)
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        run = simulation.run(scenario, Path(folder) / "run", data=data)
        seconds = time.process_time() - began
        events = run.info["log"]["events"]
        disk = sum(path.stat().st_size for path in (run.path / "events").rglob("*.parquet"))
    return {
        "seconds": seconds,
        "memory": peak_memory() - began_with,
        "bytes": disk,
        "events": events,
    }


def authors(table: dict[str, Any]) -> dict[str, float]:
    """The same market as its authors run it: no clock, no messages, no log."""
    import torch

    from benchmarks import authors_way
    from benchmarks.models import Wide

    torch.set_num_threads(1)
    hidden = table["model"].get("hidden")
    scenario = build_scenario(table)
    began_with = peak_memory()
    data = _data(scenario)
    assert data is not None
    model = None if hidden is None else Wide(data.train_x.shape[1], len(data.classes), hidden)
    began = time.process_time()
    authors_way.run(scenario, data, model=model)
    return {"seconds": time.process_time() - began, "memory": peak_memory() - began_with}


def auction(bidders: int) -> dict[str, float]:
    """all-in-critical alone; the first owner has half of all records and asks too much."""
    rng, began_with = np.random.default_rng(0), peak_memory()
    size = np.floor(rng.lognormal(3.0, 1.0, (1, bidders))) + 1
    size[0, 0] = size[0, 1:].sum()
    rate = rng.uniform(0.5, 1.5, (1, bidders))
    rate[0, 0] = 0.8
    truth = fm.Profiles(np.zeros((1, bidders), int), rate, np.ones((1, bidders)), size)
    bids, money, critical = (
        truth.bids(),
        0.4 * truth.total_value(),
        fm.auctions.create("all-in-critical"),
    )
    began = time.process_time()
    critical.decide(bids, money, rng)
    return {"seconds": time.process_time() - began, "memory": peak_memory() - began_with}


def _data(scenario: Scenario) -> Dataset | None:
    if scenario.model.name == "none":
        return None
    return datasets.create(scenario.data.name, **scenario.data.options).load(Streams(scenario.seed))


def main() -> None:
    case, limit = json.loads(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    for name in case.get("former", []):
        getattr(former, name)()
    kinds: dict[str, Any] = {"market": market, "authors": authors, "auction": auction}
    print(json.dumps(kinds[case["kind"]](case["of"])))


if __name__ == "__main__":
    main()
