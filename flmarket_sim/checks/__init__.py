"""Checks by the broker: messages in, suspicions out. One check a file."""

from flmarket_sim.checks.check import LEVEL, Check, Evidence, PastRound
from flmarket_sim.plugins.registry import checks as _registry

names = _registry.names
create = _registry.create
register = _registry.register

__all__ = ["LEVEL", "Check", "Evidence", "PastRound", "create", "names", "register"]
