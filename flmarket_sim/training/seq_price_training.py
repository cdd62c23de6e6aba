"""Training `seq-price`: backpropagation through the sequence of choices (docs/theory.md, section
4).

It needs no misreports and no multipliers. Every step draws fresh markets, offers menus to their
owners in turn, and lowers the error of what they choose. The forward choice is the hard one of the
deployed auction; its slope is that of a soft choice whose temperature falls. The number of bidders
varies from step to step, and with `kappas` so does the regime from market to market: the same
weights then serve any number of bidders and any regime.

Half of the budgets are factors of what everything is worth to its owners, as in the paper, and half
of what it would be worth at the mean rate, which says nothing about the rates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from flmarket_sim.aggregation.differentiable import error_bound_under
from flmarket_sim.aggregation.market_error import COORDINATE_KAPPA
from flmarket_sim.aggregation.opt_aggr import solve_with_duals
from flmarket_sim.aggregation.rule import data_shares
from flmarket_sim.auctions.learned.favourite import LEAST
from flmarket_sim.auctions.learned.price_network import PriceNetwork, Standing, offer_order
from flmarket_sim.errors import InputError
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.owners.family_table import EXPONENTIAL, FAMILIES, QUADRATIC, STEP
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.training.epochs import Trainer
from flmarket_sim.training.type_space import Types, TypeSampler, plugin_families

SEQ_PRICE = "seq-price"
BIDDERS = (5, 7, 10, 15, 20, 30, 50)
NOT_SOLD = 0.02  # privacy loss that stands for none, so that the slope of the error is a number
PARTS = 8  # points on a piece of the curve, for families without a formula
REGIMES = 4  # kappas in a step
WORST = 7.5  # error bounds are cut at this many times kappa


@dataclass(frozen=True)
class SeqPriceSettings:
    """The settings of a training.

    markets      of 10 bidders in a step; fewer markets if there are more bidders
    temperature  of the soft choice, relative to the highest payment on the menu: first and last
    mixed        chance that a step has another number of bidders than the scenario
    spread       a common factor in [1 / spread, spread] for the rates of a market, whose families
                 become a random mix with step owners (1: the scenario's own prior)
    widened      chance that a step has this wider prior
    kappas       lowest and highest kappa of the markets; four of them in every step, each with one
                 chance in three the lowest. None: the kappa of the scenario. Trainings take V =
                 kappa / e^2
    reveal       what a menu knows of the owner it is for: "families", "budgets" (privacy budgets).
                 Such weights are no mechanism; they measure what secrets cost
    """

    preset: str = "fast"
    steps: int = 5000
    markets: int = 1024
    hidden: int = 64
    learning_rate: float = 5e-3
    temperature: tuple[float, float] = (0.1, 0.003)
    mixed: float = 0.5
    spread: float = 1.0
    widened: float = 0.5
    kappas: tuple[float, float] | None = None
    reveal: tuple[Literal["families", "budgets"], ...] = ()
    steps_per_epoch: int = 100


def seq_price_settings(name: str) -> SeqPriceSettings:
    """The settings of a preset."""
    if name == "fast":
        return SeqPriceSettings()
    if name == "general":
        return SeqPriceSettings("general", hidden=96, spread=3.0, kappas=(COORDINATE_KAPPA, 1e5))
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
        secrets = len(FAMILIES) * ("families" in settings.reveal) + ("budgets" in settings.reveal)
        self.make_network(lambda: PriceNetwork(*shape, secrets))
        self.facts = self.network.shape_facts
        if settings.kappas is not None:
            self.facts |= {"kappas": list(settings.kappas)}
        if settings.reveal:
            self.facts |= {"reveal": list(settings.reveal)}

    def advance(self) -> dict[str, float]:
        warm = min(1.0, (self.step + 1) / 50)
        pace = self.settings.learning_rate * (1.0 if self.network.size == "certified" else 0.4)
        self.slow_down(pace * warm)
        temperature = self.cool(*self.settings.temperature)
        types = self._draw()
        kappa = self._kappas(len(types.budget))
        secrets = revealed(types, self.settings.reveal)
        game = play(self.network, types, kappa, temperature, secrets)
        error, slope = self._error(game, kappa)
        objective = self._objective(error, kappa)
        # The chain rule in two steps: the slope of the objective in the error of every market,
        # times the slope of that error in the menus.
        (weight,) = torch.autograd.grad(objective, error)
        self.descend((weight * slope).sum())
        lowest = kappa == kappa[0]
        return {
            "error": float(error.detach()[lowest].clamp(max=WORST * float(kappa[0])).mean()),
            "objective": float(objective.detach()),
            "spent": float(game.spent.mean()),
        }

    def _objective(self, error: Tensor, kappa: Tensor) -> Tensor:
        """Half of the mean of log ERR, and half of log mean ERR, of each regime."""
        bound = torch.minimum(error, WORST * kappa)
        # Prices for a record can fall to where every bound is cut: those need the slope beyond.
        each = bound if self.network.size == "certified" else error
        regimes = [kappa == one for one in sorted(set(kappa.tolist()))]
        log_means = [torch.log(bound[rows].mean()) * rows.sum() for rows in regimes]
        mean_log = torch.log(each).mean()
        return 0.5 * mean_log + 0.5 * torch.stack(log_means).sum() / len(kappa)

    def _error(self, game: Game, kappa: Tensor) -> tuple[Tensor, Tensor]:
        """(K,) errors, and numbers (K,) whose slope in the menus is that of the errors."""
        if self.rule == "opt-aggr":
            return optimal_error(game, kappa)
        held = game.loss.detach()
        smooth = torch.where(held > 0, game.loss, game.loss - held + NOT_SOLD).clamp(min=1e-3)
        unit = torch.sqrt(COORDINATE_KAPPA / kappa)[:, None]
        error = error_bound_under(self.rule, smooth * unit, game.data_size)
        return error.detach().requires_grad_(), error

    def _kappas(self, markets: int) -> Tensor:
        """(markets,) the regimes of this step, in ascending order."""
        if self.settings.kappas is None:
            return torch.full((markets,), self.kappa)
        rng = np.random.default_rng([self.seed, self.step, 78])
        low, high = self.settings.kappas
        drawn = np.exp(rng.uniform(math.log(low), math.log(high), REGIMES))
        drawn[rng.random(REGIMES) < 1 / 3] = low
        each = np.sort(np.repeat(drawn, -(-markets // REGIMES))[:markets])
        return torch.from_numpy(each.astype(np.float32))

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
        money = rng.uniform(low, high, markets)
        if scenario.budget.factor is not None:
            mean = np.full(truth.shape, np.mean(scenario.owners.rate))
            public = Profiles(truth.family, mean, truth.privacy_budget, truth.data_size)
            known = rng.random(markets) < 0.5
            money = money * np.where(known, public.total_value(), truth.total_value())
        columns = (truth.family, truth.rate, truth.privacy_budget, truth.data_size, money)
        types = Types(*(torch.from_numpy(np.asarray(column, np.float32)) for column in columns))
        home = self.settings.spread == 1.0 or rng.random() >= self.settings.widened
        return types if home else self._widened(types, scenario, rng)

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


def revealed(types: Types, reveal: tuple[str, ...]) -> Tensor | None:
    """(K, n, S) what menus know that no mechanism can know."""
    columns = []
    if "families" in reveal:
        columns += [(types.family == code).float() for code in range(len(FAMILIES))]
    if "budgets" in reveal:
        columns.append(types.privacy_budget)
    return torch.stack(columns, dim=-1) if columns else None


class Game(NamedTuple):
    """K markets played: what their owners sold, in the order of the offers.

    loss       (K, n) privacy losses: the hard choice, with the slope of the soft one
    data_size  (K, n)
    spent      (K,) share of the budget
    options    for each owner in turn the soft chances and the losses of her options, both (K, L)
    """

    loss: Tensor
    data_size: Tensor
    spent: Tensor
    options: list[tuple[Tensor, Tensor]]


def optimal_error(game: Game, kappa: Tensor) -> tuple[Tensor, Tensor]:
    """(K,) errors under exact OptAggr, and numbers (K,) whose slope is that of the errors.

    A choice between options is a jump, and the error is far from straight between them: it has
    rising returns where an owner sells little. So the slope is not taken from the derivative of the
    error. With u and v of the exact weights, an owner's part of the error is h(x) with x = e^2 /
    kappa (docs/theory.md, section 4), which holds for every option and not only nearby; the numbers
    are the mean of h over her options, by the soft chances.
    """
    loss, size = game.loss.detach().double().numpy(), game.data_size.double().numpy()
    share = data_shares(size)
    sold = np.where((loss > 0).any(axis=1, keepdims=True), loss, NOT_SOLD)
    inverse = sold**2 / kappa.double().numpy()[:, None]
    weights, low, high = solve_with_duals(inverse, share)
    noise = np.divide(weights**2, inverse, out=np.zeros_like(weights), where=inverse > 0)
    error = noise.sum(axis=1) + np.abs(weights - share).sum(axis=1) ** 2
    u, v, w = (torch.from_numpy(x.astype(np.float32)) for x in (low, high, share))
    parts = [
        (chance * _part_of_error(option**2 / kappa[:, None], u, v, w[:, i])).sum(1)
        for i, (chance, option) in enumerate(game.options)
    ]
    return torch.from_numpy(error.astype(np.float32)).requires_grad_(), torch.stack(parts).sum(0)


def _part_of_error(x: Tensor, u: Tensor, v: Tensor, share: Tensor) -> Tensor:
    """(K, L) h(x), the least of l^2 / x - 2 v l + 2 (v - u) max(0, l - W) over l; u, v, W (K,)."""
    u, v, share = u[:, None], v[:, None], share[:, None]
    stays = share**2 / x.clamp(min=1e-12) - 2.0 * v * share
    pulled_up = -(u**2) * x - 2.0 * (v - u) * share
    return torch.where(v * x <= share, -(v**2) * x, torch.where(u * x >= share, pulled_up, stays))


def play(
    network: PriceNetwork,
    types: Types,
    kappa: Tensor,
    temperature: float,
    secrets: Tensor | None = None,
) -> Game:
    """Offers menus to the owners in turn.

    The choice is hard forward and soft backward. The options are those of the deployed mechanism,
    but that with certified sizes it sells the points of a fine grid and not the whole curve.
    """
    columns = list(types[:4])
    if network.size == "certified":
        order = offer_order(types.data_size, kappa)
        columns = [column.gather(1, order) for column in columns]
        if secrets is not None:
            secrets = secrets.gather(1, order[..., None].expand_as(secrets))
    owners = Types(*columns, types.budget)  # type: ignore[call-arg]
    standing = Standing(network, owners.data_size, types.budget, kappa, secrets)
    options: CurveOptions | PairOptions
    options = (
        CurveOptions(network, owners)
        if network.size == "certified"
        else PairOptions(network, owners)
    )
    sold, soft_options = [], []
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
        soft_options.append((chance, loss))
    return Game(torch.stack(sold, 1), owners.data_size, 1.0 - standing.left.detach(), soft_options)


class CurveOptions:
    """Certified sizes: the owner's favourite point on each linear piece of the price curve.

    Families from elsewhere have no formula for it: theirs is the best of `PARTS` points.
    """

    def __init__(self, network: PriceNetwork, owners: Types) -> None:
        self.knots = network.knots(owners.rate.dtype)
        self.width = float(self.knots[0])
        self.begin = self.knots - self.width
        self.least = self.begin.clamp(min=LEAST * network.largest_loss)
        self.owners = owners
        self.scale = (owners.rate * owners.data_size / owners.budget[:, None])[..., None]
        self.end = torch.minimum(self.knots, owners.privacy_budget[..., None])
        self.at_end = owners.value(self.end) / owners.budget[:, None, None]
        self.closed = self.begin >= owners.privacy_budget[..., None]
        self.foreign = bool(plugin_families(owners.family))
        if self.foreign:
            share = torch.arange(1, PARTS + 1, dtype=owners.rate.dtype) / PARTS
            width = (self.end - self.least).clamp(min=0.0)[..., None]
            self.points = self.least[:, None] + width * share  # (K, n, L, PARTS)
            self.at_points = owners.value(self.points) / owners.budget[:, None, None, None]

    def of(self, i: int, standing: Standing) -> tuple[Tensor, Tensor, Tensor]:
        """(K, L) losses, payments in shares of the budget, utilities."""
        menu = standing.menu(i)
        below = nn.functional.pad(menu[:, :-1], (1, 0))
        slope = (menu - below) / self.width
        family, scale, end = self.owners.family[:, i, None], self.scale[:, i], self.end[:, i]
        unit = slope / scale
        quadratic = torch.maximum(torch.minimum(unit / 2, end), self.least)
        exponential = torch.maximum(torch.minimum(torch.log(unit + 1e-30), end), self.least)
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
