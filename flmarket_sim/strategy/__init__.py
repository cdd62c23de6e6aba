"""Owners who do not tell the truth: probes of a mechanism, behaviours in the market, equilibria."""

from flmarket_sim.strategy.probe import Probe, probe
from flmarket_sim.strategy.probe_file import read_probe, write_probe
from flmarket_sim.strategy.search import best_reports

__all__ = ["Probe", "best_reports", "probe", "read_probe", "write_probe"]
