"""A laboratory for markets of locally private gradients (FL-Market, IEEE BigData 2022)."""

from flmarket_sim import aggregation, auctions, privacy, strategy
from flmarket_sim.bids import BidBatch, Profiles
from flmarket_sim.errors import FlmarketError
from flmarket_sim.eventlog import read_events, read_ledger, read_owners, read_run, sql
from flmarket_sim.market.simulation import Run, run
from flmarket_sim.population import draw_markets, draw_profiles
from flmarket_sim.scenario import Scenario
from flmarket_sim.scenario_file import load_scenario
from flmarket_sim.study.sweep_folder import read_sweep

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
    "privacy",
    "read_events",
    "read_ledger",
    "read_owners",
    "read_run",
    "read_sweep",
    "run",
    "sql",
    "strategy",
]
