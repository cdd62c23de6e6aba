"""Training the paper's networks offline (paper, section V and appendix A).

The corrections of docs/theory.md, section 3, are part of it.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from flmarket_sim.aggregation.differentiable import error_bound_under
from flmarket_sim.auctions.learned.level_outcome import LevelOutcome, ReportTensors, outcome_of
from flmarket_sim.auctions.learned.paper_network import PaperNetwork
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.training import multipliers
from flmarket_sim.training.epochs import Trainer
from flmarket_sim.training.regretnet_settings import RegretNetSettings, trainable
from flmarket_sim.training.training_misreports import (
    MisreportTensors,
    ascended_misreports,
    best_misreports,
    misreport_utility,
    with_misreport,
)
from flmarket_sim.training.type_space import Types, TypeSampler

ASCENT_RATE = 0.1  # gamma, the step size of an ascent


class Loss(NamedTuple):
    """What a step lowers (`total`), the error bound in it, and the violations (n,) by name."""

    total: Tensor
    error: Tensor
    violations: multipliers.Violations


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
        default, deterministic = trainable(mechanism)
        super().__init__(mechanism, deterministic, [scenario], rule, settings, seed)
        self.levels = levels or default
        self.sampler = TypeSampler(scenario, seed)
        self.owners = scenario.market.bidders
        self.make_network(lambda: PaperNetwork(self.owners, self.levels), settings.optimiser)
        self.memory = {
            "multipliers": multipliers.at_start(self.owners),
            "running": {"regret": settings.regret_target or 0.0, "ir": settings.ir_target or 0.0},
        }

    def advance(self) -> dict[str, float]:
        settings = self.settings
        if settings.falling_rate:
            self.slow_down(settings.learning_rate)
        loss = self.loss(self.batch())
        self.descend(loss.total, settings.gradient_clip)
        violations = {name: v.detach() for name, v in loss.violations.items()}
        self._raise_multipliers(violations)
        return {
            "error": float(loss.error.detach()),
            "regret": float(violations["regret"].mean()),
            "ir": float(violations["ir"].mean()),
        }

    def batch(self) -> Types:
        """The profiles of this step: fresh ones, or the step's batch of the one sample."""
        settings = self.settings
        number = self.step if settings.fresh_profiles else self.step % settings.steps_per_epoch
        return self.sampler.draw(number, settings.markets)

    def loss(self, types: Types) -> Loss:
        """The loss of the network on profiles, with the multipliers of this step."""
        settings = self.settings
        temperature = self.cool(*settings.temperature)
        truth = types.truthful(self.levels)
        soft = outcome_of(
            self.network,
            truth,
            deterministic=self.deterministic,
            temperature=temperature if self.deterministic else None,
        )
        soft = LevelOutcome(soft.chance.float(), soft.payment.float())
        utility, cost = self._utility(truth, soft)
        objective, error = self._objective(types, soft)
        shortfall, counts = self._relative((-utility).clamp(min=0), cost)
        violations = {
            "regret": self._regret(types, truth, utility, cost, temperature),
            "ir": shortfall.sum(0) / counts.sum(0).clamp(min=1),
        }
        if self.deterministic:
            even = 1.0 / (self.levels + 1)
            violations["determinism"] = (1.0 - even - ((soft.chance - even) ** 2).sum(-1)).mean(0)
        return Loss(objective + self._penalty(violations), error, violations)

    def _utility(self, truth: ReportTensors, outcome: LevelOutcome) -> tuple[Tensor, Tensor]:
        """(K, n) expected utility of the truth, and its cost: the value of what she sells.

        With `cost_floor` the cost is at least the value of one level.
        """
        nothing = torch.zeros_like(truth.values[..., :1])
        values = torch.cat([nothing, truth.values], -1)
        cost = (outcome.chance * values).sum(-1)
        utility = (outcome.chance * (outcome.payment - values)).sum(-1)
        if self.settings.cost_floor:
            cost = torch.maximum(cost, truth.values[..., 0])
        return utility, cost.detach() if self.settings.detach_cost else cost

    def _relative(self, gain: Tensor, cost: Tensor) -> tuple[Tensor, Tensor]:
        """Gain / cost, and where it counts: it is 0 and does not count where it is not finite."""
        counts = torch.isfinite(gain.detach() / cost.detach())
        ratio = torch.where(counts, gain, 0.0) / torch.where(counts, cost, 1.0)
        if self.settings.gain_cap is not None:
            ratio = ratio.clamp(max=self.settings.gain_cap)
        return ratio, counts

    def _objective(self, types: Types, soft: LevelOutcome) -> tuple[Tensor, Tensor]:
        """The objective, and the mean error bound to report (minus the privacy sold for randomised
        nets).

        The paper's nets have n ERR; for randomised nets that is n NPL, in which the n cancels.
        """
        share = torch.arange(self.levels + 1) / self.levels
        sold = (soft.chance * share).sum(-1) * types.privacy_budget
        if not self.deterministic:
            weight = types.data_size / types.data_size.sum(1, keepdim=True)
            lost = -(weight * sold).sum(1).mean()
            return lost, lost
        bound = error_bound_under(
            self.rule, sold.double(), types.data_size.double(), error=self.noise
        )
        return self.owners * bound.mean(), bound.mean()

    def _regret(
        self, types: Types, truth: ReportTensors, utility: Tensor, cost: Tensor, temperature: float
    ) -> Tensor:
        """(n,) mean gain / cost of misreports: of one random owner of each market (search), or of
        all owners in turn (ascent)."""
        markets, search = len(truth.budget), self.settings.attack == "search"
        generator = torch.Generator().manual_seed((self.seed * 1_000_003 + self.step) % 2**63)
        if search:
            attackers = [torch.randint(0, self.owners, (markets,), generator=generator)]
        else:
            attackers = [torch.full((markets,), i) for i in range(self.owners)]
        total, number = torch.zeros(self.owners), torch.zeros(self.owners)
        rows = torch.arange(markets)
        for owner in attackers:
            if search:
                misreport = best_misreports(
                    self.network,
                    types,
                    truth,
                    owner,
                    self.settings.tries,
                    generator,
                    self.deterministic,
                    self.settings.wild,
                    self.settings.size_lies,
                )
            else:
                misreport = ascended_misreports(
                    self.network,
                    types,
                    truth,
                    owner,
                    self.settings.tries,
                    ASCENT_RATE,
                    self.deterministic,
                    temperature,
                    size_lies=self.settings.size_lies,
                    per_record=self.settings.record_ascent,
                )
            lying = self._lying(types, truth, owner, misreport, temperature)
            gain = (lying - utility[rows, owner]).clamp(min=0)
            ratio, counts = self._relative(gain, cost[rows, owner])
            total = total.index_add(0, owner, ratio)
            number = number.index_add(0, owner, counts.float())
        return total / number.clamp(min=1)

    def _lying(
        self,
        types: Types,
        truth: ReportTensors,
        owner: Tensor,
        misreport: MisreportTensors,
        temperature: float,
    ) -> Tensor:
        """(K,) the utility of a misreport of one owner of each market."""
        smooth = temperature if self.deterministic else None
        outcome = outcome_of(
            self.network,
            with_misreport(truth, owner, misreport),
            deterministic=self.deterministic,
            temperature=smooth,
        )
        outcome = LevelOutcome(outcome.chance.float(), outcome.payment.float())
        return misreport_utility(types, owner, misreport, outcome)

    def _penalty(self, violations: multipliers.Violations) -> Tensor:
        phi = self.memory["multipliers"]
        if self.settings.regret_target is not None:
            return multipliers.steered(phi, violations)
        epoch = self.step // self.settings.steps_per_epoch
        return multipliers.augmented(phi, violations, epoch)

    def _raise_multipliers(self, violations: multipliers.Violations) -> None:
        settings, phi = self.settings, self.memory["multipliers"]
        if settings.regret_target is not None:
            targets = {"regret": settings.regret_target, "ir": settings.ir_target or 1.0}
            multipliers.steer(phi, self.memory["running"], violations, self.step, targets)
        else:
            epoch = (self.step - 1) // settings.steps_per_epoch
            multipliers.raise_augmented(phi, violations, self.step, epoch)
