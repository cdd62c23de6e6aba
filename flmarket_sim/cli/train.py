"""`flmarket train`: train a learned auction."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from flmarket_sim.cli.output import (
    AsJson,
    Overrides,
    print_json,
    print_next_steps,
    print_table,
    print_text,
    progress,
)
from flmarket_sim.errors import InputError, Interrupted


def train(
    mechanism: Annotated[
        str, typer.Argument(help="regretnet, m-regretnet, dm-regretnet, seq-price or record-price.")
    ],
    scenario: Annotated[Path, typer.Option(help="The market to train for.")],
    out: Annotated[
        Path, typer.Option(help="File for the weights (.safetensors); metrics go beside it.")
    ],
    rule: Annotated[
        str, typer.Option(help="opt-aggr or convl-aggr; `fast` trains menus for both.")
    ] = "opt-aggr",
    preset: Annotated[
        str,
        typer.Option(
            help="fast, paper (appendix A of the paper; a day), "
            "or general (seq-price: wider prior)."
        ),
    ] = "fast",
    size: Annotated[
        str, typer.Option(help="seq-price: are data sizes certified or reported?")
    ] = "certified",
    also: Annotated[
        list[Path] | None, typer.Option(help="Further markets to train for (not with paper).")
    ] = None,
    start: Annotated[
        Path | None, typer.Option(help="Weights of the same shape to begin with.")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(help="Change a setting of the preset, e.g. gradient_clip=1.0 (repeatable)."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1)] = 0,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Training steps, if not the preset's.")
    ] = None,
    levels: Annotated[
        int | None, typer.Option(min=1, max=1000, help="M, if not the mechanism's.")
    ] = None,
    threads: Annotated[
        int, typer.Option(min=1, max=1024, help="Threads; the same number gives the same weights.")
    ] = 1,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Train a learned auction. The same command again continues a stopped training."""
    import torch

    from flmarket_sim import training
    from flmarket_sim.scenario.scenario_file import load_scenario

    if out.suffix != ".safetensors":
        raise InputError(f"--out must end in .safetensors, got {out}")
    if not out.parent.is_dir():
        raise InputError(f"there is no folder {out.parent}")
    if out.is_dir():
        raise InputError(f"{out} is a directory; --out names the file for the weights")
    torch.set_num_threads(threads)
    market = load_scenario(scenario, overrides or ())
    settings = training.with_overrides(training.preset(preset, mechanism), setting or ())
    if steps is not None:
        settings = replace(settings, steps=steps)
    try:
        with progress(mechanism, "steps") as report:
            learned = training.train(
                mechanism,
                market,
                rule,
                out,
                settings,
                seed=seed,
                levels=levels,
                size=size,
                also=[load_scenario(path, overrides or ()) for path in also or ()],
                start=start,
                progress=report,
            )
    except KeyboardInterrupt:
        raise Interrupted("interrupted; the same command goes on from the last epoch") from None
    metrics = learned.facts["metrics"]
    if as_json:
        print_json({"weights": str(out)} | learned.facts)
    else:
        print_table([{"metric": key, "value": value} for key, value in metrics.items()])
        print_text(f"the weights are in {out}")
        market_name = shlex.quote(str(scenario))
        print_next_steps(
            f"flmarket evaluate {mechanism}@{shlex.quote(str(out))} --scenario {market_name}"
        )
