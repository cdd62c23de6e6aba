"""Training `seq-price`: backpropagation through the sequence of choices (docs/theory.md, section
4).

It needs no misreports and no multipliers. Every step draws fresh markets, offers menus to their
owners in turn, and lowers the error of what they choose. The forward choice is the hard one of the
deployed auction; its slope is that of a soft choice whose temperature falls. The number of bidders
varies from step to step, so the same weights serve any number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from flmarket_sim.aggregation.differentiable import error_bound_under
from flmarket_sim.aggregation.market_error import COORDINATE_KAPPA
from flmarket_sim.auctions.learned.price_network import PriceNetwork, Standing
from flmarket_sim.errors import InputError
from flmarket_sim.owners.family_table import EXPONENTIAL, QUADRATIC, STEP
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.training.epochs import Trainer
from flmarket_sim.training.type_space import Types, TypeSampler, plugin_families

SEQ_PRICE = "seq-price"
BIDDERS = (5, 7, 10, 15, 20, 30, 50)
NOT_SOLD = 0.02  # privacy loss that stands for none, so that the slope of the error is a number
PARTS = 8  # points on a piece of the curve, for families without a formula
WORST = 60.0  # error bounds are cut here, for kappa = 8, and in proportion for others


@dataclass(frozen=True)
class SeqPriceSettings:
    """The settings of a training.

    markets      of 10 bidders in a step; fewer markets if there are more bidders
    temperature  of the soft choice, relative to the highest payment on the menu: first and last
    mixed        chance that a step has another number of bidders than the scenario
    spread       a common factor in [1 / spread, spread] for the rates of a market, whose families
                 become a random mix with step owners (1: the scenario's own prior)
    """

    preset: str = "fast"
    steps: int = 4000
    markets: int = 1024
    hidden: int = 64
    learning_rate: float = 5e-3
    temperature: tuple[float, float] = (0.1, 0.003)
    mixed: float = 0.5
    spread: float = 1.0
    steps_per_epoch: int = 100


def seq_price_settings(name: str) -> SeqPriceSettings:
    """The settings of a preset."""
    if name == "fast":
        return SeqPriceSettings()
    if name == "general":
        return SeqPriceSettings("general", hidden=96, spread=3.0)
    raise InputError(f"there is no preset {name!r} for {SEQ_PRICE}; choose fast or general")


class SeqPriceTrainer(Trainer):
    """Lowers the error bound of what owners choose from the menus."""

    settings: SeqPriceSettings
    network: PriceNetwork

    def __init__(
        self,
        scenarios: list[Scenario],
        rule: str,
        settings: SeqPriceSettings,
        seed: int = 0,
        levels: int | None = None,
        size: str = "certified",
    ) -> None:
        super().__init__(SEQ_PRICE, True, scenarios, rule, settings, seed)
        if size not in ("certified", "reported"):
            raise InputError(f"size must be certified or reported, got {size!r}")
        self.samplers = [TypeSampler(scenario, seed) for scenario in scenarios]
        largest = max(scenario.owners.privacy_budget[1] for scenario in scenarios)
        people = [each for one in self.samplers for each in one.populations]
        typical = float(np.mean([each.data_size.mean() for each in people]))
        worth = [
            (each.value(np.arange(len(each)), each.privacy_budget) / each.data_size).mean()
            for each in people
        ]
        count = levels or (12 if size == "certified" else 20)
        shape = (count, settings.hidden, largest, size, typical, float(np.mean(worth)))
        self.make_network(lambda: PriceNetwork(*shape))
        self.facts = self.network.shape_facts

    def advance(self) -> dict[str, float]:
        warm = min(1.0, (self.step + 1) / 50)
        pace = self.settings.learning_rate * (1.0 if self.network.size == "certified" else 0.4)
        self.slow_down(pace * warm)
        temperature = self.cool(*self.settings.temperature)
        loss, size, spent = play(self.network, self._draw(), temperature)
        held = loss.detach()
        slope = torch.where(held > 0, loss, loss - held + NOT_SOLD).clamp(min=1e-3)
        whole = error_bound_under(self.rule, slope, size, error=self.noise)
        bound = whole.clamp(max=WORST * self.kappa / COORDINATE_KAPPA)
        # Prices for a record can fall to where every bound is cut: those need the slope beyond.
        each = bound if self.network.size == "certified" else whole
        objective = 0.5 * torch.log(each).mean() + 0.5 * torch.log(bound.mean())
        self.descend(objective)
        return {
            "error": float(bound.detach().mean()),
            "objective": float(objective.detach()),
            "spent": float(spent.mean()),
        }

    def _draw(self) -> Types:
        rng = np.random.default_rng([self.seed, self.step, 77])
        place = int(rng.integers(len(self.samplers)))
        scenario, populations = self.scenarios[place], self.samplers[place].populations
        people = populations[int(rng.integers(len(populations)))]
        mixed = rng.random() < self.settings.mixed
        n = int(rng.choice(BIDDERS)) if mixed else scenario.market.bidders
        markets = max(16, self.settings.markets * 10 // max(n, 10))
        truth = people.profiles(rng.integers(0, len(people), (markets, n)))  # with replacement
        low, high = scenario.budget.factor or scenario.budget.amount or (0.0, 0.0)
        money = rng.uniform(low, high, markets) * (
            1.0 if scenario.budget.factor is None else truth.total_value()
        )
        columns = (truth.family, truth.rate, truth.privacy_budget, truth.data_size, money)
        types = Types(*(torch.from_numpy(np.asarray(column, np.float32)) for column in columns))
        return types if self.settings.spread == 1.0 else self._widened(types, scenario, rng)

    def _widened(self, types: Types, scenario: Scenario, rng: np.random.Generator) -> Types:
        """The same owners with other rates and families; the buyer's money keeps its ratio to their
        value."""
        markets, n = types.rate.shape
        factor = types.budget / types.value(types.privacy_budget).sum(1)
        width = math.log(self.settings.spread)
        rate = (
            types.rate * torch.from_numpy(np.exp(rng.uniform(-width, width, (markets, 1)))).float()
        )
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


def play(network: PriceNetwork, types: Types, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
    """(K, n) privacy losses and data sizes in the order of the offers, and (K,) the spent share.

    The choice is hard forward and soft backward. The options are those of the deployed mechanism,
    but that with certified sizes it sells the points of a fine grid and not the whole curve.
    """
    columns = list(types[:4])
    if network.size == "certified":
        order = types.data_size.argsort(dim=1, descending=True)
        columns = [column.gather(1, order) for column in columns]
    owners = Types(*columns, types.budget)  # type: ignore[call-arg]
    standing = Standing(network, owners.data_size, types.budget)
    options: CurveOptions | PairOptions
    options = (
        CurveOptions(network, owners)
        if network.size == "certified"
        else PairOptions(network, owners)
    )
    sold = []
    for i in range(owners.rate.shape[1]):
        loss, price, utility = options.of(i, standing)
        best = utility.argmax(1, keepdim=True)
        sells = utility.gather(1, best) >= 0
        heat = temperature * price.amax(1, keepdim=True).detach() + 1e-9
        chance = torch.softmax(nn.functional.pad(utility, (1, 0)) / heat, dim=1)[:, 1:]
        chosen = []
        for option in (loss, price):
            hard, soft = (option.gather(1, best) * sells)[:, 0].detach(), (chance * option).sum(1)
            chosen.append(hard + soft - soft.detach())
        standing.settle(i, chosen[0], chosen[1])
        sold.append(chosen[0])
    return torch.stack(sold, 1), owners.data_size, 1.0 - standing.left.detach()


class CurveOptions:
    """Certified sizes: the owner's favourite point on each linear piece of the price curve.

    Families from elsewhere have no formula for it: theirs is the best of `PARTS` points.
    """

    def __init__(self, network: PriceNetwork, owners: Types) -> None:
        self.knots = network.knots(owners.rate.dtype)
        self.width = float(self.knots[0])
        self.begin = self.knots - self.width
        self.owners = owners
        self.scale = (owners.rate * owners.data_size / owners.budget[:, None])[..., None]
        self.end = torch.minimum(self.knots, owners.privacy_budget[..., None])
        self.at_end = owners.value(self.end) / owners.budget[:, None, None]
        self.closed = self.begin >= owners.privacy_budget[..., None]
        self.foreign = bool(plugin_families(owners.family))
        if self.foreign:
            share = torch.arange(1, PARTS + 1, dtype=owners.rate.dtype) / PARTS
            width = (self.end - self.begin).clamp(min=0.0)[..., None]
            self.points = self.begin[:, None] + width * share  # (K, n, L, PARTS)
            self.at_points = owners.value(self.points) / owners.budget[:, None, None, None]

    def of(self, i: int, standing: Standing) -> tuple[Tensor, Tensor, Tensor]:
        """(K, L) losses, payments in shares of the budget, utilities."""
        menu = standing.menu(i)
        below = nn.functional.pad(menu[:, :-1], (1, 0))
        slope = (menu - below) / self.width
        family, scale, end = self.owners.family[:, i, None], self.scale[:, i], self.end[:, i]
        unit = slope / scale
        quadratic = torch.maximum(torch.minimum(unit / 2, end), self.begin)
        exponential = torch.maximum(torch.minimum(torch.log(unit + 1e-30), end), self.begin)
        square, steep = family == QUADRATIC, family == EXPONENTIAL
        loss = torch.where(square, quadratic, torch.where(steep, exponential, end))
        value = torch.where(
            square,
            scale * quadratic**2,
            torch.where(steep, scale * torch.expm1(exponential), self.at_end[:, i]),
        )
        if self.foreign:
            points, worth = self.points[:, i], self.at_points[:, i]
            paid = slope[..., None] * (points - self.begin[:, None])
            best = (paid.detach() - worth).argmax(-1, keepdim=True)
            other = family > STEP
            loss = torch.where(other, points.gather(-1, best)[..., 0], loss)
            value = torch.where(other, worth.gather(-1, best)[..., 0], value)
        price = below + slope * (loss - self.begin)
        closed = self.closed[:, i]
        return (
            loss.masked_fill(closed, 0.0),
            price.masked_fill(closed, 0.0),
            (price - value).masked_fill(closed, -1e9),
        )


class PairOptions:
    """Reported sizes: each loss on offer, on as many records as she has and the money pays.

    A loss on a part of her records counts for that part only. Otherwise the cheapest way to a small
    error would be a large loss on one record.
    """

    def __init__(self, network: PriceNetwork, owners: Types) -> None:
        knots = network.knots(owners.rate.dtype)
        self.loss = knots.expand(*owners.rate.shape, -1)
        self.records = owners.data_size / (network.typical_size * owners.rate.shape[1])
        self.value = owners.value(self.loss) / owners.budget[:, None, None]
        self.beyond = self.loss > owners.privacy_budget[..., None]

    def of(self, i: int, standing: Standing) -> tuple[Tensor, Tensor, Tensor]:
        """(K, L) losses, payments in shares of the budget, utilities."""
        whole = standing.menu(i) * self.records[:, i, None]
        # The part of her records that the money pays.
        part = (standing.left[:, None] / whole.clamp(min=1e-12)).clamp(max=1.0)
        price = whole * part
        utility = price - self.value[:, i] * part
        return self.loss[:, i] * part, price, utility.masked_fill(self.beyond[:, i], -1e9)
