"""A few steps of the preset `fast`, as they were when the shipped weights were made.

If a change of `fast` is intended, its shipped weights have to be trained again.
`python -m tests.training.test_fast_unchanged` prints the numbers of this commit.
"""

import hashlib
from dataclasses import replace

import pytest
import torch

from flmarket_sim import training
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.training.menu_training import MenuTrainer

MARKET = build_scenario(
    {
        "perturbation": {"name": "laplace"},
        "aggregation": {"error": "coordinate"},
        "data": {"name": "synthetic", "records": 3000},
        "owners": {"count": 40},
        "market": {"bidders": 4},
    }
)
STEPS = (3, 22)
# Weights after so many steps: their hash on the machine that made the table, their sum and the sum
# of their squares; then error and regret of the last step, and the regret's multiplier.
REFERENCE = {
    "regretnet": {
        3: ("7c0ff196b2ce4712", 13.6959, 211.8061, -0.6615827, 0.3866511, 1.0),
        22: ("45021aaaa2955273", 12.56766, 220.4029, -0.8626847, 0.3645244, 1.0597),
    },
    "m-regretnet": {
        3: ("920b9757ff41dd45", 9.000489, 216.5546, -0.5759509, 0.7442083, 1.0),
        22: ("735851d9c4a1f4d5", 13.08566, 226.7403, -0.2784855, 0.5222136, 1.081969),
    },
    "dm-regretnet": {
        3: ("4be760f10bff47b9", 1.429628, 92.9064, 18.96216, 1.191622, 1.0),
        22: ("994d79a4f4c1ae94", 18.3598, 107.0323, 20.14114, 0.7372942, 1.087721),
    },
}


def numbers(mechanism):
    """By the number of steps: hash, sum, sum of squares, error, regret, multiplier."""
    small = {"markets": 24, "tries": 5, "steps": 30, "steps_per_epoch": 10}
    settings = replace(training.preset("fast", mechanism), **small)
    trainer = MenuTrainer(mechanism, [MARKET], "opt-aggr", settings)
    found = {}
    for step in STEPS:
        while trainer.step < step:
            metrics = trainer.advance()
        flat = torch.cat([w.detach().reshape(-1) for w in trainer.network.parameters()])
        digest = hashlib.sha256(flat.numpy().tobytes()).hexdigest()[:16]
        exact = flat.double()
        found[step] = (
            digest, float(exact.sum()), float(exact.square().sum()),
            metrics["error"], metrics["regret"],
            float(trainer.memory["multipliers"]["regret"][0]),
        )  # fmt: skip
    return found


@pytest.mark.parametrize("mechanism", REFERENCE)
def test_the_fast_preset_trains_as_before(mechanism):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = numbers(mechanism)
    finally:
        torch.set_num_threads(threads)
    expected = REFERENCE[mechanism]
    if found[STEPS[-1]][0] == expected[STEPS[-1]][0]:
        return  # not a bit has changed
    for step in STEPS:  # another processor rounds in another way, which 22 steps make larger
        tolerance = 1e-5 if step == STEPS[0] else 1e-2
        assert found[step][1:] == pytest.approx(expected[step][1:], rel=tolerance), step


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in REFERENCE:
        print(name, numbers(name))
