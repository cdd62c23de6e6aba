"""A laboratory for markets of locally private gradients (FL-Market, IEEE BigData 2022)."""

from flmarket_sim import aggregation, auctions, privacy, strategy
from flmarket_sim.errors import FlmarketError
from flmarket_sim.eventlog import read_events, read_ledger, read_owners, read_run, sql, write_view
from flmarket_sim.market.simulation import Run, resume, run
from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.owners.population import draw_markets, draw_profiles
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.scenario_file import load_scenario
from flmarket_sim.sweep.paired_differences import paired_differences
from flmarket_sim.sweep.sweep_folder import read_sweep
from flmarket_sim.sweep.sweep_plan import load_sweep
from flmarket_sim.sweep.sweep_runs import run_sweep

__version__ = "0.1.0"

__all__ = [
    "BidBatch",
    "FlmarketError",
    "Profiles",
    "Run",
    "Scenario",
    "aggregation",
    "auctions",
    "draw_markets",
    "draw_profiles",
    "load_scenario",
    "load_sweep",
    "paired_differences",
    "privacy",
    "read_events",
    "read_ledger",
    "read_owners",
    "read_run",
    "read_sweep",
    "resume",
    "run",
    "run_sweep",
    "sql",
    "strategy",
    "write_view",
]
