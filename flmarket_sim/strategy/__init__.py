"""Owners who do not tell the truth: probes of a mechanism, behaviours in the market, equilibria."""

from flmarket_sim.strategy.certified.certified_gain import CertifiedGain, certified_gain
from flmarket_sim.strategy.probe import Probe, probe
from flmarket_sim.strategy.probe_file import read_probe, write_probe
from flmarket_sim.strategy.search import best_reports

__all__ = [
    "CertifiedGain",
    "Probe",
    "best_reports",
    "certified_gain",
    "probe",
    "read_probe",
    "write_probe",
]
