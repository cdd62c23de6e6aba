"""Local differential privacy in the market: releases, accounting, and an audit of perturbations."""

from flmarket_sim.privacy.noise import Noise, create_noise
from flmarket_sim.privacy.privacy_audit import AuditResult, audit
from flmarket_sim.privacy.release import Release

__all__ = ["AuditResult", "Noise", "Release", "audit", "create_noise"]
