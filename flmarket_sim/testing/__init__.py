"""For authors of auctions, valuations, perturbations, robust rules, checks and data: do these keep
their word?

Counterexamples to auctions are small markets that can be read."""

from flmarket_sim.testing.auction_audit import AuditReport, CheckFailed, Verdict, check_auction
from flmarket_sim.testing.check_check import NotACheck, check_check
from flmarket_sim.testing.counterexample import Counterexample
from flmarket_sim.testing.dataset_check import NotADataset, check_dataset
from flmarket_sim.testing.perturbation_check import NotAPerturbation, check_perturbation
from flmarket_sim.testing.robust_check import NotARobustRule, check_robust_rule
from flmarket_sim.testing.valuation_check import NotAValuation, check_valuation

__all__ = [
    "AuditReport",
    "CheckFailed",
    "Counterexample",
    "NotACheck",
    "NotADataset",
    "NotAPerturbation",
    "NotARobustRule",
    "NotAValuation",
    "Verdict",
    "check_auction",
    "check_check",
    "check_dataset",
    "check_perturbation",
    "check_robust_rule",
    "check_valuation",
]
