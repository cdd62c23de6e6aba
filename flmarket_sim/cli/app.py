"""The command line: parse, call, print. Results on stdout, progress on stderr; exit 0 done, 1 failed, 2 wrong input."""

from __future__ import annotations

import io
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from flmarket_sim.cli import (
    audit,
    data,
    privacy,
    probe,
    report,
    reproduce,
    resume,
    study,
    sweep,
    view,
)
from flmarket_sim.cli.output import (
    AsJson,
    Overrides,
    free_folder,
    print_json,
    print_rows,
    progress,
    stderr,
    stdout,
)
from flmarket_sim.cli.view import run_view
from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.plugins import registry

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.add_typer(data.app, name="data")
app.add_typer(privacy.app, name="privacy")
app.command()(probe.probe)
app.command()(study.study)
app.command()(sweep.sweep)
app.command()(audit.audit)
app.command()(report.report)
app.command()(reproduce.reproduce)
app.command()(resume.resume)
app.command()(view.view)


def _tell_version(asked: bool) -> None:
    if asked:
        from flmarket_sim import __version__

        stdout.print(f"flmarket {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def flmarket(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_tell_version, is_eager=True, help="Say which version this is."
        ),
    ] = False,
) -> None:
    """A laboratory for markets of locally private gradients."""


ScenarioFile = Annotated[
    Path,
    typer.Argument(
        metavar="SCENARIO", help="A scenario file, or a shipped one by name: quickstart."
    ),
]


@app.command()
def run(
    scenario: ScenarioFile,
    overrides: Overrides = None,
    seed: Annotated[int | None, typer.Option(help="Another seed.")] = None,
    out: Annotated[Path | None, typer.Option(help="Directory for the run; new or empty.")] = None,
    view: Annotated[
        str | None,
        typer.Option(help="Write only what broker, buyer, buyer:NAME or owner:17 sees of it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Simulate a scenario and write every event to Parquet."""
    from flmarket_sim.market import simulation
    from flmarket_sim.report.run_summary import render, summarise
    from flmarket_sim.scenario.scenario_file import load_scenario

    settings = list(overrides or ()) + ([] if seed is None else [f"seed={seed}"])
    loaded = load_scenario(scenario, settings)
    if view is not None:
        run_view(loaded, view, out or free_folder(f"{loaded.name}-{view}", "view"), as_json)
        return
    folder = out or free_folder(loaded.name, loaded.digest())
    try:
        with progress(loaded.name) as report:
            finished = simulation.run(loaded, folder, progress=report)
    except KeyboardInterrupt:
        raise resume.interrupted(folder, loaded.repeatable) from None
    if as_json:
        print_json(summarise(finished.path) | {"scenario_sha256": finished.info["scenario_sha256"]})
    else:
        stdout.print(render(finished.path))


@app.command()
def validate(
    scenario: Annotated[
        Path | None, typer.Argument(metavar="SCENARIO", help="A scenario file (TOML).")
    ] = None,
    overrides: Overrides = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of scenario files instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a scenario: everything that is wrong with it, at once."""
    from flmarket_sim.scenario.scenario_file import json_schema, load_scenario
    from flmarket_sim.sweep.sweep_plan import has_sweep, load_sweep

    if schema:
        print_json(json_schema())
        return
    if scenario is None:
        raise InputError("name a scenario file, or ask for --schema")
    loaded = load_scenario(scenario, overrides or ())
    if has_sweep(scenario):
        load_sweep(scenario, overrides or ())
    if as_json:
        print_json({"scenario": loaded.as_dict(), "sha256": loaded.digest()})
        return
    for buyer in loaded.resolved_buyers():
        stdout.print(
            f"{loaded.name}: {loaded.owners.count:,} owners, {loaded.market.bidders:,} asked a round, "
            f"{loaded.rounds:,} rounds; {buyer.name}: {buyer.auction.name}, {buyer.aggregation.name}, "
            f"model {buyer.model.name}",
            highlight=False,
        )
    stdout.print(f"valid, {loaded.digest()[:12]}", highlight=False)


_LISTED = {
    "auctions": registry.auctions,
    "aggregation": registry.aggregation,
    "behaviours": registry.behaviours,
    "datasets": registry.datasets,
    "partitions": registry.partitions,
    "delays": registry.delays,
    "models": registry.models,
    "studies": registry.studies,
}


@app.command(name="list")
def list_(
    what: Annotated[str, typer.Argument(help=f"One of {', '.join(_LISTED)}, scenarios.")],
    as_json: AsJson = False,
) -> None:
    """Names that scenarios can use, and the scenarios that are here; where none are, those that come with flmarket."""
    if what == "scenarios":
        rows = _scenarios()
    elif what in _LISTED:
        rows = [_described(_LISTED[what], name) for name in _LISTED[what].names()]
    else:
        raise InputError(
            f"there is no list of {what!r}; choose one of {', '.join(_LISTED)}, scenarios"
        )
    if as_json:
        print_json(rows)
        return
    print_rows(rows)


@app.command()
def train(
    mechanism: Annotated[
        str, typer.Argument(help="regretnet, m-regretnet, dm-regretnet or seq-price.")
    ],
    scenario: Annotated[Path, typer.Option(help="The market to train for.")],
    out: Annotated[
        Path, typer.Option(help="File for the weights (.safetensors); metrics go beside it.")
    ],
    rule: Annotated[str, typer.Option(help="opt-aggr or convl-aggr.")] = "opt-aggr",
    preset: Annotated[
        str,
        typer.Option(
            help="fast, paper (the paper's hyperparameters; hours), or general (seq-price: wider prior)."
        ),
    ] = "fast",
    size: Annotated[
        str, typer.Option(help="seq-price: are data sizes certified or reported?")
    ] = "certified",
    also: Annotated[
        list[Path] | None, typer.Option(help="seq-price: further markets to train for.")
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
    """Train a learned auction. A training that was stopped is taken up again where it was."""
    import torch

    from flmarket_sim.scenario.scenario_file import load_scenario
    from flmarket_sim.training import regretnet_training, seq_price_training

    if out.suffix != ".safetensors":
        raise InputError(f"--out must end in .safetensors, got {out}")
    if not out.parent.is_dir():
        raise InputError(f"there is no folder {out.parent}")
    if out.is_dir():
        raise InputError(f"{out} is a directory; --out names the file for the weights")
    torch.set_num_threads(threads)
    market = load_scenario(scenario, overrides or ())
    if mechanism != seq_price_training.NAME and (also or size != "certified"):
        raise InputError(f"--also and --size are for {seq_price_training.NAME} only")
    trainer: Any = regretnet_training
    more: dict[str, Any] = {}
    if mechanism == seq_price_training.NAME:
        trainer, more = (
            seq_price_training,
            {"size": size, "also": [load_scenario(path, overrides or ()) for path in also or ()]},
        )
    settings = trainer.preset(preset, mechanism)
    if steps is not None:
        settings = replace(settings, steps=steps)
    try:
        with progress(mechanism, "steps") as report:
            learned = trainer.train(
                mechanism,
                market,
                rule,
                out,
                settings,
                seed=seed,
                levels=levels,
                progress=report,
                **more,
            )
    except KeyboardInterrupt:
        raise FlmarketError("interrupted; the same command goes on from the last epoch") from None
    metrics = learned.facts["metrics"]
    if as_json:
        print_json({"weights": str(out)} | learned.facts)
    else:
        stdout.print(
            f"{out}: " + ", ".join(f"{key} {value:.4g}" for key, value in metrics.items()),
            highlight=False,
            markup=False,
        )


@app.command()
def evaluate(
    auctions: Annotated[
        list[str], typer.Argument(metavar="AUCTION...", help="NAME, NAME@WEIGHTS or module:Class.")
    ],
    scenario: Annotated[Path, typer.Option(help="The market that profiles are drawn from.")],
    rule: Annotated[str, typer.Option(help="Aggregation rule.")] = "opt-aggr",
    budgets: Annotated[
        str,
        typer.Option(help="Budget factors: low:high:step, one number, or 'uniform' in [0.1, 2]."),
    ] = "0.1:2.0:0.1",
    profiles: Annotated[int, typer.Option(min=2, help="Markets at each budget factor.")] = 1000,
    regret: Annotated[
        int, typer.Option(min=0, help="Markets of them to search for lies; 0: none.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    figure: Annotated[
        Path | None, typer.Option(help="Also draw the error bounds (.png, .svg or .pdf).")
    ] = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Compare auctions on the same markets: error, spending, individual rationality, regret, ratio to first-best."""
    from flmarket_sim.auctions import named
    from flmarket_sim.report import evaluation_table as report
    from flmarket_sim.scenario.scenario_file import load_scenario
    from flmarket_sim.studies.evaluation import sweep

    made = {name: named(name) for name in auctions}
    market = load_scenario(scenario, overrides or ())
    with progress("evaluate", "budgets") as tell:
        scores = sweep(made, market, report.factors(budgets), profiles, rule, regret, seed, tell)
    if figure is not None:
        report.draw(scores, figure)
    if as_json:
        print_json([score.as_dict() for score in scores])
    else:
        stdout.print(report.table(scores))


@app.command()
def sql(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.")],
    query: Annotated[
        str, typer.Argument(help="DuckDB SQL; every event kind is a table, 'round' is 'rounds'.")
    ],
    as_json: AsJson = False,
) -> None:
    """Ask a run's log in SQL."""
    from flmarket_sim.eventlog import sql as ask

    found = ask(directory, query)
    if as_json:
        print_json(found.to_pylist())
        return
    table = Table(*found.column_names, pad_edge=False)
    for row in zip(*(column.to_pylist() for column in found.columns), strict=True):
        table.add_row(*(Text(f"{v:.6g}" if isinstance(v, float) else str(v)) for v in row))
    stdout.print(table)


def _described(known: registry.Registry, name: str) -> dict[str, str]:
    cls = known.get(name)
    skip = 2 if known is registry.models else 0
    options = registry.options_model(cls, skip).model_fields
    row = {"name": name, "about": known.describe(name), "options": ", ".join(options)}
    if hasattr(cls, "guarantees"):
        row["guarantees"] = ", ".join(
            f"{what.replace('_', ' ')}: {who}" for what, who in cls.guarantees.items()
        )
    return row


def _scenarios() -> list[dict[str, str]]:
    from flmarket_sim.errors import ScenarioError
    from flmarket_sim.scenario.scenario_file import load_scenario
    from flmarket_sim.scenario.shipped import scenario_names

    here = [str(path) for path in sorted(Path("scenarios").rglob("*.toml"))]
    rows = []
    for name in here or scenario_names():
        try:
            about = load_scenario(name).description
        except ScenarioError:
            about = "not valid: run 'flmarket validate' on it"
        rows.append({"scenario": name, "about": about})
    return rows


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Runs the command line; what a user can get wrong ends in one clear paragraph."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names of files may be no text
    signal.signal(
        signal.SIGTERM, _interrupt
    )  # being asked to stop is an interruption: files are completed first
    try:
        app()
    except FlmarketError as error:
        stderr.print(f"flmarket: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2 if isinstance(error, InputError) else 1)
    except BrokenPipeError:
        sys.exit(1)
    except MemoryError as error:
        why = f" ({error})" if str(error) else ""
        stderr.print(
            f"flmarket: there is not enough memory for this{why}; ask for fewer records, owners, markets or levels at once",
            markup=False, highlight=False, soft_wrap=True,
        )  # fmt: skip
        sys.exit(1)
    except Exception as error:  # not foreseen: still one paragraph, and a way to the rest
        if os.environ.get("FLMARKET_TRACEBACK"):
            raise
        what = f"flmarket: {type(error).__name__}: {error}. This was not foreseen; FLMARKET_TRACEBACK=1 shows where it happened"
        stderr.print(what, markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
