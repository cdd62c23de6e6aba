"""A laboratory for markets of locally private gradients (FL-Market, IEEE BigData 2022).

Names are imported when they are first used, so that `import flmarket_sim` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flmarket_sim import aggregation, auctions, perturbation, privacy, strategy
    from flmarket_sim.errors import FlmarketError
    from flmarket_sim.eventlog import (
        read_events,
        read_ledger,
        read_model,
        read_models,
        read_owners,
        read_run,
        sql,
        write_view,
    )
    from flmarket_sim.eventlog.run import Run
    from flmarket_sim.learning.buyer_model import buyer_model
    from flmarket_sim.learning.dataset import Dataset, load_data
    from flmarket_sim.market.run_scenario import run
    from flmarket_sim.market.simulation import resume
    from flmarket_sim.owners.bids import BidBatch, Profiles
    from flmarket_sim.owners.population import draw_markets, draw_profiles
    from flmarket_sim.plugins.registry import register
    from flmarket_sim.results.audit_result import audit
    from flmarket_sim.results.evaluation_result import evaluate
    from flmarket_sim.results.league_result import league
    from flmarket_sim.results.probe_result import probe
    from flmarket_sim.results.report_page import report
    from flmarket_sim.results.study_result import study
    from flmarket_sim.results.sweep_result import sweep
    from flmarket_sim.results.verification import verify
    from flmarket_sim.scenario.model import Scenario
    from flmarket_sim.scenario.scenario_file import load_scenario
    from flmarket_sim.sweep.paired_differences import paired_differences
    from flmarket_sim.sweep.sweep_folder import read_sweep
    from flmarket_sim.sweep.sweep_plan import load_sweep
    from flmarket_sim.sweep.sweep_runs import run_sweep

__version__ = "0.1.0"

__all__ = [
    "BidBatch",
    "Dataset",
    "FlmarketError",
    "Profiles",
    "Run",
    "Scenario",
    "aggregation",
    "auctions",
    "audit",
    "buyer_model",
    "draw_markets",
    "draw_profiles",
    "evaluate",
    "league",
    "load_data",
    "load_scenario",
    "load_sweep",
    "paired_differences",
    "perturbation",
    "privacy",
    "probe",
    "read_events",
    "read_ledger",
    "read_model",
    "read_models",
    "read_owners",
    "read_run",
    "read_sweep",
    "register",
    "report",
    "resume",
    "run",
    "run_sweep",
    "sql",
    "strategy",
    "study",
    "sweep",
    "verify",
    "write_view",
]

_MODULES = {  # public name: the module that defines it, within this package
    "BidBatch": "owners.bids",
    "Dataset": "learning.dataset",
    "FlmarketError": "errors",
    "Profiles": "owners.bids",
    "Run": "eventlog.run",
    "Scenario": "scenario.model",
    "audit": "results.audit_result",
    "buyer_model": "learning.buyer_model",
    "draw_markets": "owners.population",
    "draw_profiles": "owners.population",
    "evaluate": "results.evaluation_result",
    "load_data": "learning.dataset",
    "load_scenario": "scenario.scenario_file",
    "load_sweep": "sweep.sweep_plan",
    "paired_differences": "sweep.paired_differences",
    "probe": "results.probe_result",
    "read_events": "eventlog",
    "read_ledger": "eventlog",
    "read_model": "eventlog",
    "read_models": "eventlog",
    "read_owners": "eventlog",
    "read_run": "eventlog",
    "read_sweep": "sweep.sweep_folder",
    "register": "plugins.registry",
    "resume": "market.simulation",
    "run": "market.run_scenario",
    "run_sweep": "sweep.sweep_runs",
    "sql": "eventlog",
    "study": "results.study_result",
    "verify": "results.verification",
    "write_view": "eventlog",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in _MODULES:
        return import_module(f"{__name__}.{name}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
