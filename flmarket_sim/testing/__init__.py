"""For authors of auctions, valuations, perturbations and data sets: do they do what they say?

Counterexamples to auctions are small markets that can be read."""

from flmarket_sim.testing.auction_audit import AuditReport, CheckFailed, Verdict, check_auction
from flmarket_sim.testing.counterexample import Counterexample
from flmarket_sim.testing.dataset_check import NotADataset, check_dataset
from flmarket_sim.testing.perturbation_check import NotAPerturbation, check_perturbation
from flmarket_sim.testing.valuation_check import NotAValuation, check_valuation

__all__ = [
    "AuditReport",
    "CheckFailed",
    "Counterexample",
    "NotADataset",
    "NotAPerturbation",
    "NotAValuation",
    "Verdict",
    "check_auction",
    "check_dataset",
    "check_perturbation",
    "check_valuation",
]
