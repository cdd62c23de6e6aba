"""Training `seq-price`: backpropagation through the sequence of choices (THEORY section 4). No lies, no multipliers.

Every step draws fresh markets, asks their owners one after the other, and lowers the error of what they chose. The choice is the
hard one, as deployed; its slope is that of a soft one whose temperature falls. The number of bidders changes from step to step, so that
the same weights serve any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor, nn

from flmarket_sim.aggregation.differentiable import error_bound_under
from flmarket_sim.errors import InputError
from flmarket_sim.mechanism_design import checkpoints
from flmarket_sim.mechanism_design.checkpoints import Learned
from flmarket_sim.mechanism_design.price_network import PriceNetwork, Standing
from flmarket_sim.mechanism_design.types import Types, TypeSampler
from flmarket_sim.scenario import Scenario

NAME = "seq-price"
BIDDERS = (5, 7, 10, 15, 20, 30, 50)
NOT_SOLD = 0.02  # privacy loss that stands for none, so that the slope of the error is a number
WORST = 60.0  # error bounds are cut here
Progress = Callable[[int, int, dict[str, float]], None]


@dataclass(frozen=True)
class Settings:
    """How to train.

    markets      of 10 bidders in a step; fewer when there are more bidders
    temperature  of the soft choice, relative to the highest payment on the menu: from, to
    mixed        chance that a step has another number of bidders than the scenario
    spread       rates of a market are multiplied by a common factor in [1 / spread, spread], and its families are a random mix
                 that includes step owners (1: the scenario's own prior)
    """

    preset: str = "fast"
    steps: int = 6000
    markets: int = 512
    hidden: int = 64
    learning_rate: float = 3e-3
    temperature: tuple[float, float] = (0.1, 0.003)
    mixed: float = 0.5
    spread: float = 1.0
    steps_per_epoch: int = 100


def preset(name: str, mechanism: str = NAME) -> Settings:
    if mechanism != NAME:
        raise InputError(f"{mechanism!r} is not trained here; only {NAME}")
    if name == "fast":
        return Settings()
    if name == "general":
        return Settings("general", hidden=96, mixed=0.6, spread=3.0)
    raise InputError(f"there is no preset {name!r} for {NAME}; choose fast or general")


class Trainer:
    """One training. Everything random in step t depends on the seed and t alone."""

    def __init__(
        self,
        scenarios: list[Scenario],
        rule: str,
        settings: Settings,
        seed: int = 0,
        levels: int | None = None,
        size: str = "certified",
    ) -> None:
        if rule not in ("opt-aggr", "convl-aggr"):
            raise InputError(f"training knows the rules opt-aggr and convl-aggr, not {rule!r}")
        if size not in ("certified", "reported"):
            raise InputError(f"size must be certified or reported, got {size!r}")
        self.scenarios, self.rule, self.settings, self.seed = scenarios, rule, settings, seed
        self.samplers = [TypeSampler(scenario, seed) for scenario in scenarios]
        largest = max(scenario.owners.privacy_budget[1] for scenario in scenarios)
        typical = float(np.mean([people.data_size.mean() for one in self.samplers for people in one.populations]))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            count = levels or (12 if size == "certified" else 20)
            self.network = PriceNetwork(count, settings.hidden, largest, size, typical)
        self.optimiser = torch.optim.Adam(self.network.parameters(), settings.learning_rate)
        self.step = 0
        self.history: list[dict[str, float]] = []

    def advance(self) -> dict[str, float]:
        settings, done = self.settings, self.step / self.settings.steps
        warm = min(1.0, (self.step + 1) / 50)
        for group in self.optimiser.param_groups:
            group["lr"] = settings.learning_rate * warm * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * done)))
        hot, cold = settings.temperature
        types = self._draw()
        loss, size, spent = play(self.network, types, hot * (cold / hot) ** done)
        held = loss.detach()
        slope = torch.where(held > 0, loss, loss - held + NOT_SOLD).clamp(min=1e-3)
        clip = self.scenarios[0].privacy.clip
        bound = error_bound_under(self.rule, slope, size, clip).clamp(max=WORST)
        objective = 0.5 * torch.log(bound).mean() + 0.5 * torch.log(bound.mean())
        self.optimiser.zero_grad()
        torch.autograd.backward(objective)
        nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimiser.step()
        self.step += 1
        return {"error": float(bound.detach().mean()), "objective": float(objective.detach()), "spent": float(spent.mean())}

    def _draw(self) -> Types:
        rng = np.random.default_rng([self.seed, self.step, 77])
        place = int(rng.integers(len(self.samplers)))
        sampler, scenario = self.samplers[place], self.scenarios[place]
        mixed = rng.random() < self.settings.mixed
        most = min(len(people) for people in sampler.populations)
        n = min(int(rng.choice(BIDDERS)) if mixed else scenario.market.bidders, most)
        sampler.bidders = n
        types = sampler.draw(self.step, max(16, self.settings.markets * 10 // max(n, 10)))
        return types if self.settings.spread == 1.0 else self._widened(types, scenario, rng)

    def _widened(self, types: Types, scenario: Scenario, rng: np.random.Generator) -> Types:
        """The same owners at other prices and of other families; the buyer's money follows what they are worth."""
        markets, n = types.rate.shape
        factor = types.budget / types.value(types.privacy_budget).sum(1)
        width = math.log(self.settings.spread)
        rate = types.rate * torch.from_numpy(np.exp(rng.uniform(-width, width, (markets, 1)))).float()
        odds = np.exp(1.5 * rng.standard_normal((markets, 1, 5)))
        odds[..., 4] *= 0.3 * (rng.random((markets, 1)) < 0.5)
        lot = rng.random((markets, n, 1)) * odds.sum(2, keepdims=True)
        other = (lot > odds.cumsum(2)).sum(2).clip(max=4)
        same = rng.random((markets, 1)) < 0.3
        family = torch.where(torch.from_numpy(same), types.family, torch.from_numpy(other).float())
        wide = Types(family, rate, types.privacy_budget, types.data_size, types.budget)
        if scenario.budget.factor is None:
            return wide
        return wide._replace(budget=factor * wide.value(wide.privacy_budget).sum(1))

    def state(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "history": self.history,
            "settings": asdict(self.settings),
            "scenarios": [scenario.digest() for scenario in self.scenarios],
            "of": [self.rule, self.network.size, self.network.levels, self.seed],
        }

    def restore(self, state: dict[str, Any]) -> None:
        mine = self.state()
        if any(state[key] != mine[key] for key in ("settings", "scenarios", "of")):
            raise InputError("the training to resume had another scenario or other settings; name another --out")
        self.network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.step, self.history = state["step"], state["history"]


def play(network: PriceNetwork, types: Types, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
    """(K, n) privacy losses sold and data sizes, in the order of asking, and (K,) the share of the money spent.

    Owners choose among the knots and their own budget (certified) or among the knots (reported). Forward the choice is hard, backward soft.
    """
    certified = network.size == "certified"
    columns = list(types[:4])
    if certified:
        order = types.data_size.argsort(dim=1, descending=True)
        columns = [column.gather(1, order) for column in columns]
    family, rate, eb, size = columns
    standing = Standing(network, size, types.budget)
    knots = network.knots(rate.dtype)
    nothing = torch.zeros(len(rate), 1)
    sold = []
    for i in range(rate.shape[1]):
        menu = standing.menu(i)
        own = eb[:, i : i + 1]
        loss, price = torch.cat([nothing, knots.expand(len(rate), -1)], 1), torch.cat([nothing, menu], 1)
        part = torch.ones_like(price)
        if certified:
            loss, price = torch.cat([loss, own], 1), torch.cat([price, _own_price(menu, knots, own)], 1)
            part = torch.ones_like(price)
        else:
            whole = price * size[:, i : i + 1] / (network.typical_size * rate.shape[1])
            price = torch.minimum(whole, standing.left[:, None])
            part = torch.where(whole > price, price / whole.clamp(min=1e-30), part)
        one = Types(family[:, i : i + 1], rate[:, i : i + 1], own, size[:, i : i + 1], types.budget)
        value = one.value(loss[:, None])[:, 0] / types.budget[:, None]
        utility = torch.where(loss <= own, price - value * part, torch.full_like(price, -1e9))
        best = utility.argmax(1, keepdim=True)
        heat = temperature * price[:, -1:].detach() + 1e-9
        chance = torch.softmax(utility / heat, dim=1)
        chosen = []
        for option in (loss, price):
            hard, soft = option.gather(1, best)[:, 0].detach(), (chance * option).sum(1)
            chosen.append(hard + soft - soft.detach())
        standing.settle(i, chosen[0], chosen[1])
        sold.append(chosen[0])
    return torch.stack(sold, 1), size, 1.0 - standing.left.detach()


def _own_price(menu: Tensor, knots: Tensor, own: Tensor) -> Tensor:
    place = (own / knots[0]).clamp(max=len(knots) - 1e-3)
    low = place.long()
    padded = nn.functional.pad(menu, (1, 0))
    below, above = padded.gather(1, low), padded.gather(1, low + 1)
    return below + (place - low) * (above - below)


def train(
    mechanism: str,
    scenario: Scenario,
    rule: str,
    out: Path,
    settings: Settings,
    *,
    seed: int = 0,
    levels: int | None = None,
    size: str = "certified",
    also: Sequence[Scenario] = (),
    progress: Progress | None = None,
) -> Learned:
    """Trains for a scenario's market, or for several in turn, into `out` (.safetensors), metrics beside it.

    An unfinished training beside it is taken up again.
    """
    markets = [scenario, *also]
    trainer = Trainer(markets, rule, settings, seed, levels, size)
    unfinished = out.with_name(out.name + ".training")
    if unfinished.exists():
        trainer.restore(torch.load(unfinished, weights_only=True))
    recent: list[dict[str, float]] = []
    while trainer.step < settings.steps:
        recent.append(trainer.advance())
        if trainer.step % settings.steps_per_epoch == 0 or trainer.step == settings.steps:
            means = {key: sum(row[key] for row in recent) / len(recent) for key in recent[0]}
            trainer.history.append({"step": float(trainer.step), **means})
            recent = []
            fresh = unfinished.with_name(unfinished.name + ".new")
            torch.save(trainer.state(), fresh)
            fresh.replace(unfinished)
        if progress is not None:
            progress(trainer.step, settings.steps, trainer.history[-1] if trainer.history else {})
    facts = trainer.network.shape_facts | {
        "rule": rule,
        "preset": settings.preset,
        "seed": seed,
        "steps": settings.steps,
        "scenario": ", ".join(one.name for one in markets),
        "scenario_sha256": ", ".join(one.digest() for one in markets),
        "metrics": trainer.history[-1],
    }
    learned = Learned(trainer.network.eval(), mechanism, True, True, facts)
    pq.write_table(pa.Table.from_pylist(trainer.history), out.with_suffix(".metrics.parquet"))
    checkpoints.save(out, learned)
    unfinished.unlink(missing_ok=True)
    return learned
