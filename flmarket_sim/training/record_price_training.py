"""Training `record-price`: one price curve for all records of a market (docs/false-names.md).

Every step draws fresh markets and one kappa, offers everybody the curve of the table at that money
and kappa, and lowers the error of what they choose. Nobody's choice changes another menu, so all
owners of a step choose at once. The forward choice is the hard one, its slope that of a soft choice
whose temperature falls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from flmarket_sim.aggregation.rule import takes_variance
from flmarket_sim.auctions.learned.price_table import KAPPA, PriceTable
from flmarket_sim.errors import InputError
from flmarket_sim.plugins.registry import aggregation
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.training.epochs import Trainer
from flmarket_sim.training.type_space import Types, TypeSampler

RECORD_PRICE = "record-price"
LEVELS = 12
PARTS = 4  # losses on offer in training between two knots; the auction itself offers 16
LEAST = 1 / 16  # of the largest loss: no smaller loss is for sale
NOT_SOLD = 0.02  # privacy loss that stands for none, so that the slope of the error is a number
WORST = 7.5  # times kappa: error bounds are cut here


@dataclass(frozen=True)
class RecordPriceSettings:
    """The settings of a training.

    markets      in a step
    temperature  of the soft choice, relative to the money for a record: first and last
    factor       budgets over the value of everything for sale: least and largest, drawn evenly in
                 logarithms, wider than in the scenario so that every row of the table is used
    sells        "all" records of an owner, or a learned "part" of them
    """

    preset: str = "fast"
    steps: int = 2000
    markets: int = 512
    learning_rate: float = 5e-2
    temperature: tuple[float, float] = (0.1, 0.005)
    factor: tuple[float, float] = (0.04, 4.0)
    sells: str = "all"
    steps_per_epoch: int = 100


def record_price_settings(name: str) -> RecordPriceSettings:
    """The settings of a preset."""
    if name == "fast":
        return RecordPriceSettings()
    if name == "part":
        return RecordPriceSettings("part", sells="part")
    raise InputError(f"there is no preset {name!r} for {RECORD_PRICE}; choose fast or part")


class RecordPriceTrainer(Trainer):
    """Lowers the error bound of what owners choose from one price curve for all records."""

    settings: RecordPriceSettings
    network: PriceTable

    def __init__(
        self,
        scenarios: list[Scenario],
        rule: str,
        settings: RecordPriceSettings,
        seed: int = 0,
        levels: int | None = None,
    ) -> None:
        super().__init__(RECORD_PRICE, True, scenarios, rule, settings, seed)
        self.samplers = [TypeSampler(scenario, seed) for scenario in scenarios]
        largest = max(scenario.owners.privacy_budget[1] for scenario in scenarios)
        people = [each for one in self.samplers for each in one.populations]
        worth = [
            (each.value(np.arange(len(each)), each.privacy_budget) / each.data_size).mean()
            for each in people
        ]
        shape = (levels or LEVELS, largest, float(np.mean(worth)), settings.sells)
        self.make_network(lambda: PriceTable(*shape))
        self.facts = self.network.shape_facts

    def advance(self) -> dict[str, float]:
        self.slow_down(self.settings.learning_rate)
        temperature = self.cool(*self.settings.temperature)
        rng = np.random.default_rng([self.seed, self.step, 78])
        types = self._draw(rng)
        kappa = max(math.exp(rng.uniform(KAPPA[0] - 0.5, KAPPA[-1])), math.exp(KAPPA[0]))
        loss, records, spent = play(self.network, types, kappa, temperature)
        whole = error_over_kappa(self.rule, loss, records, types.data_size, kappa)
        bound = whole.clamp(max=WORST)
        objective = 0.5 * torch.log(whole).mean() + 0.5 * torch.log(bound.mean())
        self.descend(objective)
        return {
            "error_over_kappa": float(bound.detach().mean()),
            "objective": float(objective.detach()),
            "spent": float(spent.mean()),
        }

    def _draw(self, rng: np.random.Generator) -> Types:
        place = int(rng.integers(len(self.samplers)))
        populations = self.samplers[place].populations
        people = populations[int(rng.integers(len(populations)))]
        shape = (self.settings.markets, self.scenarios[place].market.bidders)
        truth = people.profiles(rng.integers(0, len(people), shape))  # with replacement
        low, high = np.log(self.settings.factor)
        money = np.exp(rng.uniform(low, high, shape[0])) * truth.total_value()
        columns = (truth.family, truth.rate, truth.privacy_budget, truth.data_size, money)
        return Types(*(torch.from_numpy(np.asarray(column, np.float32)) for column in columns))


def play(
    table: PriceTable, types: Types, kappa: float, temperature: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(K, n) privacy losses that owners choose, (K, n) the records that are for sale, and (K,) the
    spent share of the budgets.

    All prices are in shares of the money for a record. The options are those of the deployed
    mechanism on a coarser grid.
    """
    total = types.data_size.sum(1)
    per_record = types.budget / total
    part, curve = table(per_record, kappa)
    grid, price = _on_grid(table.knots(curve.dtype), curve)
    price = price[:, None, :].expand(-1, types.rate.shape[1], -1)
    losses = grid.expand_as(price)
    worth = (types.data_size * per_record[:, None])[..., None]
    utility = price - part[:, None, None] * types.value(losses) / worth
    utility = utility.masked_fill(losses > types.privacy_budget[..., None], -1e9)
    best = utility.argmax(-1, keepdim=True)
    sells = (utility.gather(-1, best) >= 0)[..., 0]
    chance = torch.softmax(nn.functional.pad(utility, (1, 0)) / temperature, dim=-1)[..., 1:]
    soft = (chance * losses).sum(-1)
    hard = torch.where(sells, grid[best[..., 0]], 0.0)
    paid = torch.where(sells, price.gather(-1, best)[..., 0], 0.0).detach()
    spent = (paid * types.data_size).sum(1) / total
    return hard + soft - soft.detach(), part[:, None] * types.data_size, spent


def error_over_kappa(
    rule: str, loss: Tensor, records: Tensor, data_size: Tensor, kappa: float
) -> Tensor:
    """(K,) the error bound over kappa if losses (K, n) are sold on some of the records (K, n).

    Records that are not sold count as those of an owner who sells nothing. Weights are held
    constant in the gradient (docs/theory.md, section 1).
    """
    held = loss.detach()
    slope = torch.where(held > 0, loss, loss - held + NOT_SOLD).clamp(min=1e-3)
    total = data_size.sum(1, keepdim=True)
    left = total - records.sum(1, keepdim=True)
    share = torch.cat([records, left.clamp(min=0.0)], 1) / total
    losses = nn.functional.pad(slope, (0, 1))
    with torch.no_grad():
        every, weigher = losses.double().numpy(), aggregation.create(rule)
        variance = np.where(every > 0, kappa / np.maximum(every, 1e-9) ** 2, np.inf)
        sizes = np.maximum(share.double().numpy(), 1e-12)
        fixed = (
            weigher.weights(every, sizes, 1.0, variance=variance)
            if takes_variance(weigher)
            else weigher.weights(every, sizes, 1.0)
        )
        weights = torch.from_numpy(fixed).to(loss)
    noise = (weights[:, :-1] / slope).square().sum(1)
    return noise + (weights - share).abs().sum(1).square() / kappa


def _on_grid(knots: Tensor, curve: Tensor) -> tuple[Tensor, Tensor]:
    """(G,) losses on offer and (K, G) their prices, straight between knots from 0 at 0 on."""
    share = torch.arange(1, PARTS + 1, dtype=curve.dtype) / PARTS
    width = knots[0]
    grid = ((knots - width)[:, None] + width * share).reshape(-1)
    below = nn.functional.pad(curve[:, :-1], (1, 0))
    price = (below[..., None] + (curve - below)[..., None] * share).flatten(1)
    offered = grid >= LEAST * knots[-1]
    return grid[offered], price[:, offered]
