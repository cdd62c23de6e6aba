"""Perturbation: gradients in, private gradients out. One mechanism a file."""

from flmarket_sim.perturbation.perturbation import Perturbation, delta_of, vector_error
from flmarket_sim.plugins.registry import perturbations as _registry

names = _registry.names
create = _registry.create
register = _registry.register

__all__ = ["Perturbation", "create", "delta_of", "names", "register", "vector_error"]
