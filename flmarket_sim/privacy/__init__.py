"""Local differential privacy: clipping, noise, releases, accounting, and an audit of the noise."""

from flmarket_sim.privacy.clipping import clip_l1
from flmarket_sim.privacy.laplace import noise_scale, perturb, unit_noise
from flmarket_sim.privacy.noise import Noise, create_noise, require_noise
from flmarket_sim.privacy.privacy_audit import AuditResult, audit
from flmarket_sim.privacy.release import Release

__all__ = [
    "AuditResult",
    "Noise",
    "Release",
    "audit",
    "clip_l1",
    "create_noise",
    "noise_scale",
    "perturb",
    "require_noise",
    "unit_noise",
]
