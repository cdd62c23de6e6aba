"""For authors of mechanisms: does an auction do what it says? Counterexamples are small markets
that can be read."""

from flmarket_sim.testing.auction_audit import AuditReport, CheckFailed, Verdict, check_auction
from flmarket_sim.testing.counterexample import Counterexample

__all__ = ["AuditReport", "CheckFailed", "Counterexample", "Verdict", "check_auction"]
