"""Scenario files and [sweep] tables, whole and damaged."""

from __future__ import annotations

import copy
import json
import random
import tomllib
from pathlib import Path

from flmarket_sim.scenario.model import without_nulls
from flmarket_sim.scenario.scenario_file import build_scenario, load_scenario
from flmarket_sim.sweep.sweep_plan import load_sweep

from .mutations import mutate_bytes, mutate_text, mutate_tree, value
from .toml_text import _value, dump

SCENARIOS = Path(__file__).parents[2] / "scenarios"
EVERYTHING = """
name = "all of it"
description = "every table that a file can have"
seed = 3
rounds = 2
data = { name = "synthetic", records = 4000, features = 5, classes = 3, skew = 0.5, separation = 1.0, test_records = 50 }
aggregation = { name = "convl-aggr" }
auction = { name = "posted-price", price = 2.0 }
[owners]
count = 40
partition = { name = "dirichlet", alpha = 0.5, minimum = 3 }
families = ["linear", "step", "sqrt"]
rate = [0.5, 1.5]
privacy_budget = 2.0
lifetime_budget = 9.0
accept = "always"
availability = 0.9
dropout = 0.1
records_per_second = [1.0, 100.0]
behaviours = [{ name = "scale", factor = 1.5, share = 0.5, from_round = 1 }, { name = "coalition", share = 0.2 }]
[market]
bidders = 5
levels = 4
delay = { name = "lognormal", median = 0.1, sigma = 1.0 }
bid_deadline = 1.0
decision_deadline = 1.0
gradient_deadline = 1.0
counterfactual = true
[privacy]
clip = 2.0
[budget]
amount = [1.0, 10.0]
[model]
name = "logistic"
learning_rate = 0.1
evaluate_every = 2
[[buyers]]
name = "first"
auction = { name = "all-in" }
[[buyers]]
name = "second"
budget = { factor = 0.5 }
model = { name = "none" }
[sweep]
seeds = [1, 2]
keep_events = true
[sweep.grid]
market.levels = [2, 4]
"owners.rate" = [[0.5, 1.0], 2.0]
[sweep.zip]
auction.price = [1.0, 2.0]
privacy.clip = [1.0, 3.0]
"""
SET = b"\n#!set "  # overrides travel in the input as comments


class ScenarioReader:
    """load_scenario, with overrides."""

    name = "scenario"
    suffix = ".toml"
    only_sweeps = False

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scenario é.toml"
        texts = [path.read_text(encoding="utf-8") for path in sorted(SCENARIOS.rglob("*.toml"))] + [
            EVERYTHING
        ]
        self.texts = [text for text in texts if not self.only_sweeps or "[sweep" in text]
        self.trees = [tomllib.loads(text) for text in self.texts]

    def make(self, rng: random.Random) -> bytes:
        kind = rng.random()
        place = rng.randrange(len(self.texts))
        if kind < 0.6:
            tree = mutate_tree(copy.deepcopy(self.trees[place]), rng, self.trees)
            data = dump(tree if isinstance(tree, dict) else {}, rng).encode()
        elif kind < 0.85:
            data = mutate_text(self.texts[place], rng, self.texts).encode("utf-8", "surrogatepass")
        else:
            data = mutate_bytes(
                self.texts[place].encode(), rng, [text.encode() for text in self.texts]
            )
        if rng.random() < 0.2:
            paths = [
                "auction.name",
                "owners.rate",
                "rounds",
                "seed",
                "buyers.0.name",
                "buyers",
                "data.records",
                "sweep.seeds",
                "a..b",
                "é",
            ]
            setting = f"{rng.choice(paths)}={_value(value(rng), rng)}"[:3000].replace("\n", " ")
            data += SET + setting.encode("utf-8", "surrogatepass")
        return data

    def read(self, data: bytes) -> None:
        text, *settings = data.split(SET)
        self.file.write_bytes(text)
        scenario = load_scenario(
            self.file, [setting.decode("utf-8", "surrogateescape") for setting in settings]
        )
        plain = scenario.as_dict()
        json.dumps(plain, allow_nan=False).encode()
        again = build_scenario(without_nulls(json.loads(json.dumps(plain))))
        assert again.digest() == scenario.digest(), (
            "what run.json keeps is not the scenario that was read"
        )


class SweepReader(ScenarioReader):
    """load_sweep: the runs that a [sweep] table asks for."""

    name = "sweep"
    only_sweeps = True

    def read(self, data: bytes) -> None:
        text, *settings = data.split(SET)
        self.file.write_bytes(text)
        plan = load_sweep(
            self.file, [setting.decode("utf-8", "surrogateescape") for setting in settings]
        )
        assert all((run.scenario is None) == bool(run.problem) for run in plan.runs)
