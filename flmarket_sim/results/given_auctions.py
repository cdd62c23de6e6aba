"""The auctions of a call: names, classes or objects, under names that the engine can find.

A name stands for the same auction in every process. A class or an object of a notebook exists in
this process alone, so it is known by a name here for as long as the call lasts.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from flmarket_sim.auctions.auction_name import auction_labels
from flmarket_sim.errors import InputError
from flmarket_sim.plugins import registry

AnyAuction = Any  # a name, a class, or an object with the methods of an auction


@dataclass(frozen=True)
class GivenAuctions:
    """The auctions of a call in order, each once.

    `labels` has the name for people of each name. Only auctions that `travel` can be used by worker
    processes.
    """

    labels: dict[str, str]
    travel: bool

    @property
    def names(self) -> list[str]:
        return list(self.labels)

    def name_of(self, label: str) -> str:
        """The auction that goes by a name or a label."""
        for name, known in self.labels.items():
            if label in (name, known):
                return name
        raise InputError(
            f"{label!r} is not among the auctions of this call: {', '.join(self.labels.values())}"
        )


@contextmanager
def given_auctions(auctions: AnyAuction | Sequence[AnyAuction]) -> Iterator[GivenAuctions]:
    """One auction or several. The names that the block gets are good for the block."""
    several = list(auctions) if isinstance(auctions, list | tuple) else [auctions]
    if not several:
        raise InputError("name at least one auction")
    labels: dict[str, str] = {}
    with ExitStack() as loans:
        typed = auction_labels(dict.fromkeys(each for each in several if isinstance(each, str)))
        for auction in several:
            if isinstance(auction, str):
                labels[auction] = typed[auction]
                continue
            label = _label(auction)
            safe = re.sub(r"[^\w.-]+", "-", label) or "auction"
            name = loans.enter_context(registry.auctions.lent(_maker(auction), safe))
            labels[name] = _free(label, [*typed.values(), *labels.values()])
        yield GivenAuctions(labels, all(isinstance(auction, str) for auction in several))


def _free(label: str, taken: list[str]) -> str:
    """A label that no other auction has."""
    free, number = label, 1
    while free in taken:
        number += 1
        free = f"{label} ({number})"
    return free


def _label(auction: Any) -> str:
    """The name of a class or an object, once it has what an auction needs."""
    kind = auction if isinstance(auction, type) else type(auction)
    missing = [need for need in registry.auctions.needs if not hasattr(auction, need)]
    if missing:
        raise InputError(
            f"{kind.__name__} is not an auction: it has no {' and no '.join(missing)}. An auction "
            "is a name, a class or an object (docs/writing-a-mechanism.md)"
        )
    return str(auction.name)


def _maker(auction: Any) -> Callable[[], Any]:
    if isinstance(auction, type):
        return auction

    def own_auction() -> Any:
        try:
            return copy.deepcopy(auction)
        except Exception:  # foreign objects need not be copyable
            return auction

    return own_auction
