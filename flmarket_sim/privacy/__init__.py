"""Local differential privacy: clipping, Laplace noise, and an audit that can fail."""

from flmarket_sim.privacy.audit import AuditResult, audit
from flmarket_sim.privacy.clipping import clip_l1
from flmarket_sim.privacy.laplace import noise_scale, perturb, unit_noise

__all__ = ["AuditResult", "audit", "clip_l1", "noise_scale", "perturb", "unit_noise"]
