"""Training the paper's learned auctions offline (paper, section V and appendix A).

The corrections of docs/theory.md, section 3, are part of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from flmarket_sim.aggregation.differentiable import error_bound_under
from flmarket_sim.auctions.learned.level_outcome import LevelOutcome, ReportTensors, outcome_of
from flmarket_sim.auctions.learned.menu_network import MenuNetwork
from flmarket_sim.auctions.learned.paper_network import PaperNetwork
from flmarket_sim.errors import InputError
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.training.epochs import Trainer
from flmarket_sim.training.training_misreports import (
    ascended_misreports,
    best_misreports,
    misreport_utility,
    with_misreport,
)
from flmarket_sim.training.type_space import Types, TypeSampler

# Levels of each mechanism, and whether it is deterministic.
MECHANISMS = {"regretnet": (1, False), "m-regretnet": (8, False), "dm-regretnet": (8, True)}


@dataclass(frozen=True)
class RegretNetSettings:
    """The settings of a training. `paper` follows the paper; `fast` trains best here.

    regret_target and ir_target steer one multiplier each (multiplier *= exp(gain log(violation /
    target))). Without targets, the multipliers follow the augmented Lagrangian of appendix A, one
    for each owner.
    """

    preset: str
    network: str
    steps: int
    markets: int
    learning_rate: float
    attack: str  # "search" or "ascent"
    tries: int
    temperature: tuple[float, float]
    regret_target: float | None = None
    ir_target: float | None = None
    steps_per_epoch: int = 50
    wild: float = 0.0  # share of extreme misreports in a search


def regretnet_settings(name: str, mechanism: str) -> RegretNetSettings:
    """The settings of a preset for a mechanism."""
    _, deterministic = _trainable(mechanism)
    if name == "paper":
        return RegretNetSettings(
            "paper", "paper", 5000, 1024, 1e-3, "ascent", 100, (0.125, 0.125), steps_per_epoch=100
        )
    if name == "fast" and deterministic:
        return RegretNetSettings(
            "fast", "menu", 1600, 256, 2e-3, "search", 28, (0.2, 0.05), regret_target=0.05, wild=0.3
        )
    if name == "fast":
        return RegretNetSettings(
            "fast",
            "paper",
            2000,
            512,
            2e-3,
            "search",
            12,
            (1.0, 1.0),
            regret_target=0.05,
            ir_target=0.02,
        )
    raise InputError(f"there is no preset {name!r}; choose fast or paper")


def _trainable(mechanism: str) -> tuple[int, bool]:
    if mechanism not in MECHANISMS:
        names = ", ".join(MECHANISMS)
        raise InputError(f"{mechanism!r} cannot be trained; choose one of {names} or seq-price")
    return MECHANISMS[mechanism]


class RegretNetTrainer(Trainer):
    """Lowers the error bound of a paper's auction, and its owners' gains from misreports."""

    settings: RegretNetSettings

    def __init__(
        self,
        mechanism: str,
        scenario: Scenario,
        rule: str,
        settings: RegretNetSettings,
        seed: int = 0,
        levels: int | None = None,
    ) -> None:
        default, deterministic = _trainable(mechanism)
        super().__init__(mechanism, deterministic, [scenario], rule, settings, seed)
        self.levels = levels or default
        self.sampler = TypeSampler(scenario, seed)
        self.owners = scenario.market.bidders
        self.make_network(
            lambda: (
                MenuNetwork(self.levels)
                if settings.network == "menu"
                else PaperNetwork(self.owners, self.levels)
            )
        )
        self.memory = {
            "multipliers": {
                name: torch.ones(self.owners) for name in ("regret", "ir", "determinism")
            },
            "running": {"regret": settings.regret_target or 0.0, "ir": settings.ir_target or 0.0},
        }

    def advance(self) -> dict[str, float]:
        settings = self.settings
        if settings.preset == "fast":
            self.slow_down(settings.learning_rate)
        temperature = self.cool(*settings.temperature)
        types = self.sampler.draw(self.step, settings.markets)
        truth = types.truthful(self.levels)
        soft = outcome_of(
            self.network,
            truth,
            deterministic=self.deterministic,
            temperature=temperature if self.deterministic else None,
        )
        soft = LevelOutcome(soft.chance.float(), soft.payment.float())
        utility, cost = self._utility(types, truth, soft)
        objective, error = self._objective(types, truth, soft)
        regret = self._regret(types, truth, utility, cost, temperature)
        ir = ((-utility).clamp(min=0) / cost).clamp(max=5.0).mean(0)
        spread = (
            1.0 - 1.0 / (self.levels + 1) - ((soft.chance - 1.0 / (self.levels + 1)) ** 2).sum(-1)
        )
        violations = {"regret": regret, "ir": ir}
        if self.deterministic and settings.network == "paper":
            violations["determinism"] = spread.mean(0)
        self.descend(objective + self._penalty(violations))
        self._raise_multipliers({name: v.detach() for name, v in violations.items()})
        return {
            "error": float(error.detach()),
            "regret": float(regret.detach().mean()),
            "ir": float(ir.detach().mean()),
        }

    def _utility(
        self, types: Types, truth: ReportTensors, outcome: LevelOutcome
    ) -> tuple[Tensor, Tensor]:
        """(K, n) expected utility of the truth, and its cost: the value of what she sells, at least
        that of one level."""
        nothing = torch.zeros_like(truth.values[..., :1])
        values = torch.cat([nothing, truth.values], -1)
        if isinstance(self.network, MenuNetwork):  # she gets her favourite: no smoothing needed
            gains = outcome.payment - values
            best = gains.argmax(-1, keepdim=True)
            cost = values.gather(-1, best)[..., 0]
            return gains.gather(-1, best)[..., 0], torch.maximum(
                cost, truth.values[..., 0]
            ).detach()
        cost = (outcome.chance * values).sum(-1)
        return (outcome.chance * (outcome.payment - values)).sum(-1), torch.maximum(
            cost, truth.values[..., 0]
        ).detach()

    def _objective(
        self, types: Types, truth: ReportTensors, soft: LevelOutcome
    ) -> tuple[Tensor, Tensor]:
        """The objective, and the mean error bound to report (minus the privacy sold for randomised
        nets)."""
        share = torch.arange(self.levels + 1) / self.levels
        sold = (soft.chance * share).sum(-1) * types.privacy_budget
        if not self.deterministic:
            weight = types.data_size / types.data_size.sum(1, keepdim=True)
            lost = -(weight * sold).sum(1).mean()
            return lost, lost
        if isinstance(self.network, MenuNetwork):
            # The deployed sale, with the slope of the smooth one.
            hard = (
                outcome_of(self.network, truth, deterministic=True).chance.float()
                @ share
                * types.privacy_budget
            )
            sold = torch.where(hard > 0, hard.detach() + sold - sold.detach(), sold.clamp(min=1e-3))
            bound = error_bound_under(
                self.rule, sold.double(), types.data_size.double(), self.scenarios[0].privacy.clip
            )
            return torch.log(bound).mean() + 0.5 * torch.log(
                bound.clamp(max=100.0).mean()
            ), bound.clamp(max=100.0).mean()
        bound = error_bound_under(
            self.rule,
            sold.double().clamp(min=1e-3),
            types.data_size.double(),
            self.scenarios[0].privacy.clip,
        )
        return self.owners * bound.mean(), bound.mean()

    def _regret(
        self, types: Types, truth: ReportTensors, utility: Tensor, cost: Tensor, temperature: float
    ) -> Tensor:
        """(n,) mean gain / cost of misreports: of one random owner of each market (search), or of
        all owners in turn (ascent)."""
        generator = torch.Generator().manual_seed((self.seed * 1_000_003 + self.step) % 2**63)
        markets = len(truth.budget)
        total = torch.zeros(self.owners)
        if self.settings.attack == "search":
            owner = torch.randint(0, self.owners, (markets,), generator=generator)
            gain = self._gain(types, truth, utility, cost, owner, generator, temperature)
            count = torch.zeros(self.owners).index_add(0, owner, torch.ones(markets)).clamp(min=1)
            return total.index_add(0, owner, gain) / count
        gains = []
        for i in range(self.owners):
            gains.append(
                self._gain(
                    types, truth, utility, cost, torch.full((markets,), i), generator, temperature
                ).mean()
            )
        return torch.stack(gains)

    def _gain(
        self,
        types: Types,
        truth: ReportTensors,
        utility: Tensor,
        cost: Tensor,
        owner: Tensor,
        generator: torch.Generator,
        temperature: float,
    ) -> Tensor:
        settings, rows = self.settings, torch.arange(len(owner))
        if settings.attack == "search":
            misreport = best_misreports(
                self.network,
                types,
                truth,
                owner,
                settings.tries,
                generator,
                self.deterministic,
                settings.wild,
            )
        else:
            misreport = ascended_misreports(
                self.network,
                types,
                truth,
                owner,
                settings.tries,
                0.1,
                self.deterministic,
                temperature,
            )
        smooth = temperature if self.deterministic and settings.network == "paper" else None
        outcome = outcome_of(
            self.network,
            with_misreport(truth, owner, misreport),
            deterministic=self.deterministic,
            temperature=smooth,
        )
        lying = misreport_utility(
            types, owner, misreport, LevelOutcome(outcome.chance.float(), outcome.payment.float())
        )
        return ((lying - utility[rows, owner]).clamp(min=0) / cost[rows, owner]).clamp(max=5.0)

    def _penalty(self, violations: dict[str, Tensor]) -> Tensor:
        if self.settings.regret_target is not None:
            return sum(
                (self.memory["multipliers"][name][0] * v.mean() for name, v in violations.items()),
                torch.zeros(()),
            )
        epoch = self.step // self.settings.steps_per_epoch
        total = torch.zeros(())
        for name, v in violations.items():
            rho = 1.0 if name == "determinism" else 1.0 + epoch
            total = total + (self.memory["multipliers"][name] * v).sum() + 0.5 * rho * v.sum() ** 2
        return total

    def _raise_multipliers(self, violations: dict[str, Tensor]) -> None:
        settings = self.settings
        multipliers, running = self.memory["multipliers"], self.memory["running"]
        if settings.regret_target is not None:
            targets = {
                "regret": settings.regret_target,
                "ir": settings.ir_target or 1.0,
                "determinism": 1.0,
            }
            for name in running:
                running[name] = 0.98 * running[name] + 0.02 * float(violations[name].mean())
                if self.step % 20 == 0:
                    push = 0.05 * math.log(max(running[name], 1e-4) / targets[name])
                    multipliers[name] = (multipliers[name] * math.exp(push)).clamp(0.05, 100.0)
        elif self.step % 10 == 0:
            epoch = (self.step - 1) // settings.steps_per_epoch
            for name, v in violations.items():
                multipliers[name] = (
                    multipliers[name] + (1.0 if name == "determinism" else 1.0 + epoch) * v
                )
