"""Training the menus of the paper's auctions (auctions/learned/menu_network.py).

Every step draws fresh markets and regimes, plays them, and lowers the error of what owners take
and the gains of misreports. The forward choice is the hard one of the deployed auction; its slope
is that of a soft choice whose temperature falls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from flmarket_sim.aggregation.differentiable import error_bound_under, optimal_error_bound
from flmarket_sim.aggregation.market_error import COORDINATE_KAPPA
from flmarket_sim.auctions.learned.level_outcome import ReportTensors
from flmarket_sim.auctions.learned.menu_network import KAPPAS, MenuNetwork, Menus
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.training import multipliers
from flmarket_sim.training.epochs import Trainer
from flmarket_sim.training.regretnet_settings import trainable
from flmarket_sim.training.training_misreports import (
    MisreportTensors,
    random_misreports,
    with_misreport,
)
from flmarket_sim.training.type_space import Types, TypeSampler

NOT_SOLD = 0.02  # privacy loss that stands for none, so that the slope of the error is a number
WORST = 60.0  # error bounds are cut at so many times the bound of buying everything
NEAR = (3000.0, 8000.0)  # kappas of whole gradients of some hundred coordinates


@dataclass(frozen=True)
class MenuSettings:
    """The settings of a training of menus.

    markets        in a step
    attacked       markets of them whose owners are searched for misreports
    temperature    of the soft choice, relative to the highest payment on the menu: first and last
    attack_every   steps from one search for misreports to the next
    tries          random misreports of one owner of each market; the best one counts
    wild           the share of them that goes far: from some level on the price is raised, beyond
                   all money if need be
    size_lies      whether misreports also state fewer records
    regret_target  one multiplier is steered so that the mean gain / cost stays here
    gain_cap       the gain of one owner in one market counts up to this many times her cost
    paper_regime, near_regime
                   shares of the markets at kappa = 8 and at kappa in [3000, 8000]; the others have
                   kappas from 8 to 100,000, alike likely in logarithms
    looks_ahead    whether menus read the reports of those who come later
    by_size        the share of the markets under convl-aggr; the others have optimal weights
    """

    preset: str = "fast"
    steps: int = 1400
    markets: int = 512
    attacked: int = 128
    hidden: int = 96
    learning_rate: float = 4e-3
    temperature: tuple[float, float] = (0.1, 0.005)
    attack_every: int = 4
    tries: int = 12
    wild: float = 0.4
    size_lies: bool = False
    regret_target: float = 0.002
    gain_cap: float = 5.0
    paper_regime: float = 0.4
    near_regime: float = 0.3
    by_size: float = 0.35
    looks_ahead: bool = False
    steps_per_epoch: int = 100


class MenuTrainer(Trainer):
    """Lowers the error bound of what owners take from menus, and their gains from misreports."""

    settings: MenuSettings
    network: MenuNetwork

    def __init__(
        self,
        mechanism: str,
        scenarios: list[Scenario],
        rule: str,
        settings: MenuSettings,
        seed: int = 0,
        levels: int | None = None,
    ) -> None:
        default, deterministic = trainable(mechanism)
        super().__init__(mechanism, deterministic, scenarios, rule, settings, seed)
        self.rule = "opt-aggr, convl-aggr"
        self.levels = levels = levels or default
        self.samplers = [TypeSampler(scenario, seed) for scenario in scenarios]
        largest = max(scenario.owners.privacy_budget[1] for scenario in scenarios)
        self.make_network(
            lambda: MenuNetwork(levels, settings.hidden, largest, settings.looks_ahead)
        )
        self.facts = self.network.shape_facts
        self.memory = {
            "multipliers": multipliers.at_start(1),
            "running": {"regret": settings.regret_target},
        }

    def advance(self) -> dict[str, float]:
        self.slow_down(self.settings.learning_rate * min(1.0, (self.step + 1) / 50))
        temperature = self.cool(*self.settings.temperature)
        types, kappa, by_size = self.draw()
        truth = types.truthful(self.levels)._replace(kappa=kappa, by_size=by_size)
        upwards = None if self.deterministic else self._coins(len(kappa))
        menus = self.network(*truth, temperature, upwards)
        objective, error = self._objective(types, truth, menus)
        if self.step % self.settings.attack_every == 0:
            objective = objective + self._penalty(types, truth, menus, temperature, upwards)
        self.descend(objective)
        return {"error": float(error), "regret": float(self.memory["running"]["regret"])}

    def _penalty(
        self,
        types: Types,
        truth: ReportTensors,
        menus: Menus,
        temperature: float,
        upwards: Tensor | None,
    ) -> Tensor:
        """The regret times its multiplier, which is steered on the way."""
        regret = self._regret(types, truth, menus, temperature, upwards)
        phi = self.memory["multipliers"]
        penalty = multipliers.steered(phi, {"regret": regret})
        targets = {"regret": self.settings.regret_target}
        found = {"regret": regret.detach()}
        multipliers.steer(phi, self.memory["running"], found, self.step, targets)
        return penalty

    def draw(self) -> tuple[Types, Tensor, Tensor]:
        """The markets of this step, all of one scenario, their kappas and their rules (K,)."""
        settings = self.settings
        types = self.samplers[self.step % len(self.samplers)].draw(self.step, settings.markets)
        rng = np.random.default_rng([self.seed, self.step, 15])
        low, high = np.log(KAPPAS)
        kappa = np.exp(rng.uniform(low, high, settings.markets))
        near = np.exp(rng.uniform(np.log(NEAR[0]), np.log(NEAR[1]), settings.markets))
        lot = rng.random(settings.markets)
        kappa = np.where(lot < settings.paper_regime, COORDINATE_KAPPA, kappa)
        kappa = np.where(lot > 1.0 - settings.near_regime, near, kappa)
        by_size = rng.random(settings.markets) < settings.by_size
        return (
            types,
            torch.from_numpy(kappa.astype(np.float32)),
            torch.from_numpy(by_size.astype(np.float32)),
        )

    def _coins(self, markets: int) -> Tensor:
        """(K,) whether the money goes from the smallest owner to the largest."""
        rng = np.random.default_rng([self.seed, self.step, 16])
        return torch.from_numpy(rng.random(markets) < 0.5)

    def _objective(self, types: Types, truth: ReportTensors, menus: Menus) -> tuple[Tensor, Tensor]:
        """The objective, and the mean error to report; both over the error of buying everything.

        A loss e at kappa has the variance of a loss e sqrt(8 / kappa) at kappa = 8. Under
        convl-aggr those who sell nothing have no weight and the error no slope in their losses, so
        who should sell is learned from optimal weights.
        """
        scale = torch.sqrt(COORDINATE_KAPPA / truth.kappa)[:, None].double()
        size = types.data_size.double()
        sold = menus.share * types.privacy_budget
        held = sold.detach()
        everything = optimal_error_bound(types.privacy_budget.double() * scale, size)
        slope = torch.where(held > 0, sold, sold - held + NOT_SOLD).clamp(min=1e-3)
        best = optimal_error_bound(slope.double() * scale, size) / everything
        sellers = torch.where(held > 0, sold, 0.0).double()
        usual = error_bound_under("convl-aggr", sellers * scale, size) / everything
        ratio = torch.where(truth.by_size > 0, usual, best).clamp(max=WORST)
        objective = 0.5 * torch.log(ratio).mean() + 0.5 * torch.log(ratio.mean())
        entry = torch.where(truth.by_size > 0, torch.log(best.clamp(max=WORST)), 0.0).mean()
        return objective + 0.5 * entry, ratio.detach().mean()

    def _regret(
        self,
        types: Types,
        truth: ReportTensors,
        menus: Menus,
        temperature: float,
        upwards: Tensor | None,
    ) -> Tensor:
        """(1,) mean gain / cost of the best of some misreports of one random owner of each market.

        The coin is the same for the truth and for misreports.
        """
        markets = min(self.settings.attacked, self.settings.markets)
        tries = self.settings.tries
        rows = torch.arange(markets)
        types, truth = types.take(rows), ReportTensors(*(column[rows] for column in truth))
        generator = torch.Generator().manual_seed((self.seed * 1_000_003 + self.step) % 2**63)
        owner = torch.randint(0, truth.values.shape[1], (markets,), generator=generator)
        with torch.no_grad():
            many = rows.repeat_interleave(tries)
            misreports = random_misreports(
                types.take(many), owner[many], self.levels, generator,
                self.settings.wild, self.settings.size_lies,
            )  # fmt: skip
            wide = ReportTensors(*(column[many] for column in truth))
            reports = with_misreport(wide, owner[many], misreports)
            lies = self.network(*reports, None, _rows(upwards, many))
            utility, _ = utility_of(lies, types.take(many), owner[many], misreports)
            chosen = utility.view(markets, tries).argmax(1) + rows * tries
            misreport = MisreportTensors(*(column[chosen] for column in misreports))
        reports = with_misreport(truth, owner, misreport)
        lying = self.network(*reports, temperature, _rows(upwards, rows))
        honest = MisreportTensors(*(column[rows, owner] for column in truth[:3]))
        gained, _ = utility_of(lying, types, owner, misreport)
        usual, cost = utility_of(menus, types, owner, honest)
        cost = torch.maximum(cost.detach(), honest.values[:, 0])
        gain = ((gained - usual).clamp(min=0) / cost).clamp(max=self.settings.gain_cap)
        return gain.mean()[None]


def _rows(upwards: Tensor | None, rows: Tensor) -> Tensor | None:
    return None if upwards is None else upwards[rows]


def utility_of(
    menus: Menus, types: Types, owner: Tensor, report: MisreportTensors
) -> tuple[Tensor, Tensor]:
    """(K,) the true utility and cost of owner[k], who made this report."""
    rows = torch.arange(len(owner))
    level, payment = menus.level[rows, owner], menus.payment[rows, owner]
    paid = torch.nn.functional.pad(payment, (1, 0)).gather(1, level[:, None])[:, 0]
    loss = report.privacy_budget * (level / payment.shape[1])
    cost = types.of_owner(owner).value(loss, report.data_size)
    return paid - cost, cost
