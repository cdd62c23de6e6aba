"""A training from start to end: epochs, a state to continue from, weights and metrics."""

from __future__ import annotations

import errno
import hashlib
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor, nn

from flmarket_sim.aggregation.market_error import COORDINATE_KAPPA
from flmarket_sim.aggregation.noise_curve import NoiseCurve
from flmarket_sim.auctions.learned import weight_files
from flmarket_sim.auctions.learned.weight_files import Learned
from flmarket_sim.errors import InputError, shortened
from flmarket_sim.perturbation.scenario_error import scenario_error
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.storage.atomic_files import disk_error, write_whole
from flmarket_sim.storage.result_folders import alone

OTHER_TRAINING = (
    "the training to resume was of another mechanism, rule, seed or scenario, "
    "or had other settings; name another `out`"
)
AGAIN = "Free some space; the same command then goes on from the last epoch"
Progress = Callable[[int, int, dict[str, float]], None]


class Trainer:
    """What is trained, one step (`advance`) at a time; step t depends on the seed and t alone.

    settings  a dataclass with `preset`, `steps`, `steps_per_epoch` and `learning_rate`
    memory    what steps carry on beside network and optimiser: tensors and plain data
    history   a row of metrics for each epoch
    facts     what is particular to the network, for the weight file
    noise     the variance in the markets to train for, and `kappa`, their regime
    """

    def __init__(
        self,
        mechanism: str,
        deterministic: bool,
        scenarios: list[Scenario],
        rule: str,
        settings: Any,
        seed: int,
    ) -> None:
        if rule not in ("opt-aggr", "convl-aggr"):
            raise InputError(f"training knows the rules opt-aggr and convl-aggr, not {rule!r}")
        self.mechanism, self.deterministic, self.scenarios = mechanism, deterministic, scenarios
        self.rule, self.settings, self.seed, self.step = rule, settings, seed, 0
        self.kappa, self.noise = _common_error(scenarios)
        self.memory: dict[str, Any] = {}
        self.history: list[dict[str, float]] = []
        self.facts: dict[str, Any] = {}

    def make_network(self, make: Callable[[], nn.Module], optimiser: str = "adam") -> None:
        """Makes the network, with weights drawn from the seed, and its optimiser.

        The optimiser is "adam", or "descent" for plain steps down the slope.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self.network: Any = make()
        kind = torch.optim.Adam if optimiser == "adam" else torch.optim.SGD
        self.optimiser = kind(self.network.parameters(), self.settings.learning_rate)

    def begin_with(self, weights: Path) -> None:
        """Takes over the weights of a file, whose network must have the same shape."""
        learned = weight_files.load_safetensors(weights)
        shapes = [
            {name: tensor.shape for name, tensor in network.state_dict().items()}
            for network in (learned.network, self.network)
        ]
        if learned.mechanism != self.mechanism or shapes[0] != shapes[1]:
            raise InputError(
                f"{weights} cannot be begun with: it has the weights of {learned.mechanism!r}, or "
                "of a network of another shape"
            )
        self.network.load_state_dict(learned.network.state_dict())
        self.facts["start_sha256"] = hashlib.sha256(weights.read_bytes()).hexdigest()

    def advance(self) -> dict[str, float]:
        """Takes one step, and returns its metrics."""
        raise NotImplementedError

    def cool(self, begin: float, end: float) -> float:
        """The temperature of this step: from `begin` to `end`, by a constant factor."""
        return float(begin * (end / begin) ** (self.step / self.settings.steps))

    def slow_down(self, rate: float) -> None:
        """Sets the learning rate of this step: from `rate` to 1 % of it, along a cosine."""
        done = self.step / self.settings.steps
        for group in self.optimiser.param_groups:
            group["lr"] = rate * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * done)))

    def descend(self, objective: Tensor, clip: float | None = 1.0) -> None:
        """Moves the weights one step down the slope of the objective, scaled to the norm `clip`.

        Weights stay where they are if the slope is not finite.
        """
        self.optimiser.zero_grad()
        torch.autograd.backward(objective)
        weights = list(self.network.parameters())
        if clip is not None:
            nn.utils.clip_grad_norm_(weights, clip)
        if all(w.grad is None or bool(torch.isfinite(w.grad).all()) for w in weights):
            self.optimiser.step()
        self.step += 1


def _common_error(scenarios: list[Scenario]) -> tuple[float, NoiseCurve]:
    """The kappa and the noise of the scenarios; refuses scenarios of different errors."""
    errors = [scenario_error(scenario) for scenario in scenarios]
    kappas = [COORDINATE_KAPPA if error.kind == "coordinate" else error.kappa for error in errors]
    for scenario, kappa in zip(scenarios, kappas, strict=True):
        if not math.isclose(kappa, kappas[0], rel_tol=1e-9):
            raise InputError(
                f"markets to train for must count the same error: {scenarios[0].name!r} has kappa "
                f"= {kappas[0]:.4g} and {scenario.name!r} has kappa = {kappa:.4g}"
            )
    largest = max(scenario.owners.privacy_budget[1] for scenario in scenarios)
    return kappas[0], NoiseCurve.of(errors[0], largest)


def run_epochs(trainer: Trainer, out: Path, progress: Progress | None) -> None:
    """Takes all steps, from where an unfinished training beside `out` was left.

    No other process trains into `out` meanwhile.
    """
    with alone(
        out.with_name(f".{out.name}.lock"),
        f"another process is training into {out}; name another `out`",
    ):
        _take_steps(trainer, out, progress)


def _take_steps(trainer: Trainer, out: Path, progress: Progress | None) -> None:
    unfinished, steps = _unfinished(out), trainer.settings.steps
    if unfinished.exists():
        _restore(trainer, unfinished)
    recent: list[dict[str, float]] = []
    while trainer.step < steps:
        recent.append(trainer.advance())
        if trainer.step % trainer.settings.steps_per_epoch == 0 or trainer.step == steps:
            means = {key: sum(row[key] for row in recent) / len(recent) for key in recent[0]}
            trainer.history.append({"step": float(trainer.step), **means})
            recent = []
            _save(_state(trainer), unfinished)
        if progress is not None:
            progress(trainer.step, steps, trainer.history[-1] if trainer.history else {})


def finish(trainer: Trainer, out: Path) -> Learned:
    """Writes weights and metrics, and deletes the state of the unfinished training."""
    facts = trainer.facts | {
        "rule": trainer.rule,
        "kappa": trainer.kappa,
        "preset": trainer.settings.preset,
        "seed": trainer.seed,
        "steps": trainer.settings.steps,
        "scenario": ", ".join(scenario.name for scenario in trainer.scenarios),
        "scenario_sha256": ", ".join(scenario.digest() for scenario in trainer.scenarios),
        "metrics": trainer.history[-1],
    }
    network = trainer.network.eval()
    learned = Learned(network, trainer.mechanism, trainer.deterministic, True, facts)
    metrics, table = out.with_suffix(".metrics.parquet"), pa.Table.from_pylist(trainer.history)
    try:
        write_whole(metrics, lambda fresh: pq.write_table(table, fresh))
        weight_files.save(out, learned)
        _unfinished(out).unlink(missing_ok=True)
    except OSError as error:
        raise disk_error(out, error, AGAIN) from error
    return learned


def _state(trainer: Trainer) -> dict[str, Any]:
    """Everything that a later session needs to continue as if there had been no break."""
    return {
        "step": trainer.step,
        "network": trainer.network.state_dict(),
        "optimiser": trainer.optimiser.state_dict(),
        "memory": trainer.memory,
        "history": trainer.history,
        "of": _training(trainer),
    }


def _training(trainer: Trainer) -> dict[str, Any]:
    """What must be the same for a training to be continued."""
    return {
        "mechanism": trainer.mechanism,
        "rule": trainer.rule,
        "seed": trainer.seed,
        "network": [trainer.network.levels, trainer.facts],
        "settings": asdict(trainer.settings),
        "scenarios": [scenario.digest() for scenario in trainer.scenarios],
    }


def _save(state: dict[str, Any], unfinished: Path) -> None:
    try:
        write_whole(unfinished, lambda fresh: torch.save(state, fresh))
    except (
        OSError,
        RuntimeError,
    ) as error:  # torch has an error of its own for a disk that is full
        cause = (
            error if isinstance(error, OSError) else OSError(errno.EIO, str(error).splitlines()[0])
        )
        raise disk_error(unfinished, cause, AGAIN) from error


def _restore(trainer: Trainer, unfinished: Path) -> None:
    try:
        state = torch.load(unfinished, weights_only=True)
        possible = isinstance(state["step"], int) and 0 < state["step"] <= trainer.settings.steps
        if not possible or not _is_history(state["history"]):
            raise ValueError("steps or metrics that cannot be")
        if state["of"] != _training(trainer):
            raise InputError(OTHER_TRAINING)
        trainer.network.load_state_dict(state["network"])
        trainer.optimiser.load_state_dict(state["optimiser"])
        trainer.step, trainer.memory, trainer.history = (
            state[key] for key in ("step", "memory", "history")
        )
    except InputError:
        raise
    except Exception as error:  # torch has many ways to say that a file is none of its own
        reason = shortened(str(error).strip().split("\n")[0])
        raise InputError(
            f"{unfinished} is damaged ({reason}); delete it, and the training begins anew"
        ) from None


def _is_history(history: Any) -> bool:
    rows = history if isinstance(history, list) else [None]
    return all(
        isinstance(row, dict) and all(isinstance(value, float) for value in row.values())
        for row in rows
    )


def _unfinished(out: Path) -> Path:
    return out.with_name(out.name + ".training")
