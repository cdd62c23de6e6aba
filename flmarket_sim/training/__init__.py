"""Training of learned auctions: `preset` has settings for each of them, and `train` trains it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flmarket_sim.auctions.learned.weight_files import Learned
from flmarket_sim.errors import InputError
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.training.epochs import Progress, Trainer, finish, run_epochs
from flmarket_sim.training.menu_training import MenuSettings, MenuTrainer
from flmarket_sim.training.record_price_training import (
    RECORD_PRICE,
    RecordPriceSettings,
    RecordPriceTrainer,
    record_price_settings,
)
from flmarket_sim.training.regretnet_settings import RegretNetSettings, paper_settings, trainable
from flmarket_sim.training.regretnet_training import RegretNetTrainer
from flmarket_sim.training.seq_price_training import (
    SEQ_PRICE,
    SeqPriceSettings,
    SeqPriceTrainer,
    seq_price_settings,
)
from flmarket_sim.training.setting_overrides import with_overrides

Settings = RegretNetSettings | MenuSettings | SeqPriceSettings | RecordPriceSettings


def preset(name: str, mechanism: str) -> Settings:
    """The settings of a preset for a mechanism."""
    if mechanism == SEQ_PRICE:
        return seq_price_settings(name)
    if mechanism == RECORD_PRICE:
        return record_price_settings(name)
    trainable(mechanism)
    if name == "paper":
        return paper_settings(mechanism)
    if name == "fast":
        return MenuSettings()
    raise InputError(f"there is no preset {name!r}; choose fast or paper")


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
    start: Path | None = None,
    progress: Progress | None = None,
) -> Learned:
    """Trains a mechanism for a scenario's market into `out` (.safetensors), with metrics beside it.

    A training that was interrupted continues from its last epoch. `size` is an option of seq-price.
    All trainings but the preset paper take further markets (`also`), in turn. Menus are trained for
    both rules at once. `start` names weights of a network of the same shape to begin with.
    """
    trainer: Trainer
    if isinstance(settings, SeqPriceSettings):
        trainer = SeqPriceTrainer([scenario, *also], rule, settings, seed, levels, size)
    elif size != "certified":
        raise InputError(f"`size` is for {SEQ_PRICE} only")
    elif isinstance(settings, RecordPriceSettings):
        trainer = RecordPriceTrainer([scenario, *also], rule, settings, seed, levels)
    elif isinstance(settings, MenuSettings):
        trainer = MenuTrainer(mechanism, [scenario, *also], rule, settings, seed, levels)
    elif also:
        raise InputError("`also` is not for the preset paper")
    else:
        trainer = RegretNetTrainer(mechanism, scenario, rule, settings, seed, levels)
    if start is not None:
        trainer.begin_with(start)
    run_epochs(trainer, out, progress)
    return finish(trainer, out)


__all__ = ["MenuSettings", "RegretNetSettings", "Settings", "preset", "train", "with_overrides"]
