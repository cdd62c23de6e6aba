"""For authors of mechanisms, valuations and perturbations: does a plug-in do what it says?

Counterexamples to auctions are small markets that can be read."""

from flmarket_sim.testing.auction_audit import AuditReport, CheckFailed, Verdict, check_auction
from flmarket_sim.testing.counterexample import Counterexample
from flmarket_sim.testing.perturbation_check import NotAPerturbation, check_perturbation
from flmarket_sim.testing.valuation_check import NotAValuation, check_valuation

__all__ = [
    "AuditReport",
    "CheckFailed",
    "Counterexample",
    "NotAPerturbation",
    "NotAValuation",
    "Verdict",
    "check_auction",
    "check_perturbation",
    "check_valuation",
]
