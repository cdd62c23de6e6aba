"""Cheats that copy: an owner's last message, or the way that the public model goes anyway."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from flmarket_sim.strategy.cheats.cheat import Floats, Plan, SaleView
from flmarket_sim.strategy.cheats.noise import random_directions

Key = tuple[int, int]  # buyer and owner


class Stale:
    """Sends her last message to the buyer again. The first one is honest.

    A message that has left costs nothing more: whatever is computed from it is as private as it.
    `uses` is how often she sends one message before she makes an honest one again; 0: for ever.
    """

    name = "stale"

    def __init__(self, uses: Annotated[int, Field(ge=0, le=10**6)] = 0) -> None:
        self.uses = uses
        self.messages: dict[Key, Floats] = {}
        self.used: dict[Key, int] = {}

    def plan(self, view: SaleView) -> Plan:
        repeated = np.full((len(view.owners), view.rules.dimension), np.nan)
        for row, owner in enumerate(view.owners.tolist()):
            key = (view.buyer, owner)
            if key in self.messages and not 0 < self.uses <= self.used[key]:
                repeated[row] = self.messages[key]
        again = ~np.isnan(repeated).any(axis=1)
        return Plan(lost=np.where(again, 0.0, view.privacy_loss), repeated=repeated)

    def updates(self, view: SaleView, updates: Floats) -> Floats:
        return updates

    def sent(self, buyer: int, owner: int, message: Floats) -> None:
        key = (buyer, owner)
        again = key in self.messages and np.array_equal(self.messages[key], message)
        self.used[key] = self.used[key] + 1 if again else 1
        self.messages[key] = message

    def state(self) -> dict[str, Any]:
        keys = sorted(self.messages)
        by_buyer = {buyer: [key for key in keys if key[0] == buyer] for buyer, _ in keys}
        state: dict[str, Any] = {}
        for buyer, own in by_buyer.items():
            state[f"{buyer} owners"] = np.array([owner for _, owner in own], np.int64)
            state[f"{buyer} used"] = np.array([self.used[key] for key in own], np.int64)
            state[f"{buyer} messages"] = np.stack([self.messages[key] for key in own])
        return state

    def restore(self, state: dict[str, Any]) -> None:
        self.messages, self.used = {}, {}
        for buyer in sorted({int(name.split()[0]) for name in state}):
            owners = state[f"{buyer} owners"].tolist()
            columns = (state[f"{buyer} used"].tolist(), state[f"{buyer} messages"])
            for owner, used, message in zip(owners, *columns, strict=True):
                self.used[buyer, owner] = int(used)
                self.messages[buyer, owner] = np.array(message, np.float64)


class PublicDirection:
    """Releases the last step of the buyer's public model, as if it were her own gradient.

    The step is the model before the last round less the model now, so it points where a gradient
    points. It says nothing about her records. Before the model has moved, it is a random direction.
    """

    name = "public-direction"

    def __init__(self) -> None:
        self.seen: dict[int, tuple[int, Floats]] = {}  # by buyer: the latest round, its model
        self.steps: dict[int, Floats] = {}

    def plan(self, view: SaleView) -> Plan:
        return Plan(lost=0.0 * view.privacy_loss)

    def updates(self, view: SaleView, updates: Floats) -> Floats:
        latest = self.seen.get(view.buyer)
        if latest is None or latest[0] < view.round:
            if latest is not None and not np.array_equal(latest[1], view.parameters):
                self.steps[view.buyer] = latest[1] - view.parameters
            self.seen[view.buyer] = (view.round, view.parameters.copy())
        step = self.steps.get(view.buyer)
        if step is None:
            return random_directions(view)
        return np.tile(step, (len(view.owners), 1))

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = {}
        for buyer, (number, parameters) in self.seen.items():
            state[f"{buyer} round"] = np.array([number], np.int64)
            state[f"{buyer} model"] = parameters
            if buyer in self.steps:
                state[f"{buyer} step"] = self.steps[buyer]
        return state

    def restore(self, state: dict[str, Any]) -> None:
        self.seen, self.steps = {}, {}
        for buyer in sorted({int(name.split()[0]) for name in state}):
            model = np.array(state[f"{buyer} model"], np.float64)
            self.seen[buyer] = (int(state[f"{buyer} round"][0]), model)
            if f"{buyer} step" in state:
                self.steps[buyer] = np.array(state[f"{buyer} step"], np.float64)
