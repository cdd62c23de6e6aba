"""A laboratory for markets of locally private gradients (FL-Market, IEEE BigData 2022)."""

from flmarket_sim import aggregation, auctions, privacy, strategy
from flmarket_sim.bids import BidBatch, Profiles
from flmarket_sim.errors import FlmarketError
from flmarket_sim.eventlog import read_events, read_ledger, read_owners, read_run, sql, write_view
from flmarket_sim.market.simulation import Run, resume, run
from flmarket_sim.population import draw_markets, draw_profiles
from flmarket_sim.scenario import Scenario
from flmarket_sim.scenario_file import load_scenario
from flmarket_sim.study.paired import paired_differences
from flmarket_sim.study.sweep import run_sweep
from flmarket_sim.study.sweep_file import load_sweep
from flmarket_sim.study.sweep_folder import read_sweep

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
