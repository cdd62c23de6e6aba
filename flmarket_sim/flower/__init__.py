"""Real federated clients through Flower: the same market with owners on other machines.

`Owner` and `client_app` are the client's side, `server_app` the broker's and the buyers' side.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flmarket_sim.flower.client import client_app
    from flmarket_sim.flower.owner import Owner
    from flmarket_sim.flower.server import server_app

PLACES = {"Owner": "owner", "client_app": "client", "server_app": "server"}
__all__ = ["Owner", "client_app", "server_app"]


def __getattr__(name: str) -> Any:
    """Imports a name on first use, and Flower with it."""
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{PLACES[name]}"), name)
