"""A buyer's model of any size, for `scale`."""

from __future__ import annotations

import torch


class Wide(torch.nn.Sequential):
    """One hidden layer: about hidden x (features + classes + 1) parameters."""

    def __init__(self, features: int, classes: int, hidden: int) -> None:
        super().__init__(
            torch.nn.Linear(features, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, classes)
        )
