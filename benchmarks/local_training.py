"""What local training costs beside plain gradients: 1,000 owners of records like NSL-KDD's.

`python -m benchmarks.local_training` computes what all owners of a round send, without the market.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.models import Wide
from benchmarks.timing import best_of
from flmarket_sim.learning.local_training import owner_updates
from flmarket_sim.learning.logistic import Logistic
from flmarket_sim.learning.torch_model import TorchModel
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import Learning

OWNERS, RECORDS, FEATURES, CLASSES, STEPS = 1000, 125_973, 122, 5, 20


def main() -> None:
    source = registry.datasets.create(
        "synthetic", records=RECORDS, features=FEATURES, classes=CLASSES, test_records=10
    )
    data, rng = source.load(Streams(0)), np.random.default_rng(0)
    cuts = np.sort(rng.choice(np.arange(1, RECORDS), OWNERS - 1, replace=False))
    sizes = np.diff(np.concatenate([[0], cuts, [RECORDS]]))
    rows, owners = rng.permutation(RECORDS), np.arange(OWNERS)

    def side(model: Logistic | TorchModel, spec: Learning) -> Callable[[], object]:
        start = model.initial()
        return lambda: owner_updates(
            model, spec, start, data, rows, sizes, Streams(0), owners, 0, 0
        )

    ways = {
        "gradient": Learning(),
        f"{STEPS} steps on all records": Learning(update="local", steps=STEPS),
        f"{STEPS} steps on batches of 32": Learning(update="local", steps=STEPS, batch=32),
    }
    models = {
        "logistic": Logistic(FEATURES, CLASSES),
        "torch, one hidden layer of 32": TorchModel(Wide, FEATURES, CLASSES, {"hidden": 32}, 0),
    }
    print("## Local training\n")
    print(f"{OWNERS:,} owners of {RECORDS:,} records with {FEATURES} features; seconds a round.\n")
    print(f"| model | {' | '.join(ways)} |\n|---{'|---' * len(ways)}|")
    for name, model in models.items():
        with threadpool_limits(limits=1, user_api="blas"):
            times = best_of(3, *(side(model, spec) for spec in ways.values()))
        print(f"| {name} | {' | '.join(f'{seconds:.2f}' for seconds in times)} |")


if __name__ == "__main__":
    main()
