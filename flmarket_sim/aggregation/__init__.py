"""Aggr: privacy losses and data sizes in, aggregation weights out. One idea a file."""

from flmarket_sim.aggregation.error_bound import ErrorBound, error_bound, error_bound_parts
from flmarket_sim.aggregation.market_error import MarketError, coordinate_error, error_of_kappa
from flmarket_sim.aggregation.rule import AggregationRule
from flmarket_sim.plugins.registry import aggregation as _registry

names = _registry.names
create = _registry.create
register = _registry.register

__all__ = [
    "AggregationRule",
    "ErrorBound",
    "MarketError",
    "coordinate_error",
    "create",
    "error_bound",
    "error_bound_parts",
    "error_of_kappa",
    "names",
    "register",
]
