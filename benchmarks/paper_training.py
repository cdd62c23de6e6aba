"""One step of `flmarket train --preset paper` (K = 1024, J = 100), and the time of 50 epochs.

Times are processor seconds of one thread, so that other work on the machine does not count.
"""

from __future__ import annotations

import time
from pathlib import Path

import torch

import flmarket_sim as fm
from flmarket_sim import training
from flmarket_sim.training.regretnet_training import RegretNetTrainer

TURNS = 2


def main() -> None:
    torch.set_num_threads(1)
    market = fm.load_scenario(Path(__file__).parents[1] / "scenarios/paper/iid.toml")
    print("## The paper's own training, one thread\n")
    print("| mechanism | one step | 50 epochs of 100 steps |\n|---|---|---|")
    for name in ("regretnet", "m-regretnet", "dm-regretnet"):
        settings = training.preset("paper", name)
        assert isinstance(settings, training.RegretNetSettings)
        trainer = RegretNetTrainer(name, market, "opt-aggr", settings)
        seconds = min(_seconds(trainer) for _ in range(TURNS))
        print(f"| {name} | {seconds:.1f} s | {seconds * settings.steps / 3600:.0f} h |")


def _seconds(trainer: RegretNetTrainer) -> float:
    began = time.process_time()
    trainer.advance()
    return time.process_time() - began


if __name__ == "__main__":
    main()
