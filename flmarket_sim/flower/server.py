"""The server's side as a ServerApp of Flower: `app = server_app("scenario.toml")`."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.eventlog.run import Run
from flmarket_sim.flower.library import flower
from flmarket_sim.flower.lifeline import held
from flmarket_sim.flower.server_market import GATHER, Settings, serve
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.scenario_file import load_scenario


def server_app(scenario: str | Path) -> Any:
    """A ServerApp that holds the market of a scenario.

    The run's configuration in Flower (`[tool.flwr.app.config]`, or `flwr run --run-config`) names
    the run directory `out`. It may have `clients` and `gather`, for how many clients the first
    round waits and for how many seconds at most, and another `scenario`.
    """
    app = flower("flwr.serverapp").ServerApp()

    @app.main()  # type: ignore[untyped-decorator]
    def main(grid: Any, context: Any) -> None:
        try:
            config = dict(context.run_config)
            line = config.get("lifeline")
            with held(str(line)) if line else nullcontext():
                finished = _held(scenario, grid, config)
        except FlmarketError as error:
            print(f"flmarket: {error}", flush=True)
            raise
        print(f"flmarket: {finished!r}", flush=True)

    return app


def _held(scenario: str | Path, grid: Any, config: dict[str, Any]) -> Run:
    """The run that a market with this configuration ends with."""
    if not config.get("out"):
        raise InputError("the run's configuration must name a run directory: out = '...'")
    settings = Settings(
        drawn=bool(config.get("drawn", False)),
        clients=int(config.get("clients", 0)) or None,
        gather=float(config.get("gather", GATHER)),
    )
    loaded = _load(Path(str(config.get("scenario") or scenario)))
    return serve(loaded, Path(str(config["out"])).expanduser(), grid, settings, _show)


def _load(path: Path) -> Scenario:
    """A scenario from a file of TOML, or of JSON as run.json has it."""
    if path.suffix != ".json":
        return load_scenario(path)
    return Scenario(**json.loads(path.read_text(encoding="utf-8")))


def _show(done: int, total: int) -> None:
    print(f"flmarket: round {done} of {total} is done", flush=True)
