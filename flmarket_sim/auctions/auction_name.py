"""What users type to name an auction: NAME, NAME@WEIGHTS or module:Class."""

from __future__ import annotations

from os.path import basename, splitext
from typing import NamedTuple


class AuctionName(NamedTuple):
    """An auction, and for a learned one the weights that it uses (None: its own default)."""

    name: str
    weights: str | None

    @classmethod
    def parse(cls, text: str) -> AuctionName:
        name, at, weights = text.partition("@")
        return cls(name, weights if at else None)

    @property
    def table(self) -> dict[str, str]:
        """The [auction] table of a scenario, and the options of `auctions.create`."""
        return {"name": self.name} | ({} if self.weights is None else {"weights": self.weights})

    @property
    def label(self) -> str:
        """The name for people: a file of weights goes by the file's name alone."""
        if self.weights is None:
            return self.name
        return f"{self.name}@{splitext(basename(self.weights))[0]}"
