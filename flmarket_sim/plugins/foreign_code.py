"""Foreign code: what a process says before it imports a plug-in of others, and whether it may.

Importing a module or a file runs it. Everything that a name leads to is foreign, unless it is a
module of this package: `path/to/file.py:Class`, `module:Class`, the entry points of other packages.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from flmarket_sim.errors import InputError, shown

OWN = __name__.partition(".")[0]
NOT_LOOKED_AT = "not looked at, since it needs foreign code"


class ForeignCodeRefused(InputError):
    """Foreign code was named, and this process imports none."""


@dataclass
class ForeignCode:
    """What this process does about foreign code.

    allowed  whether it is imported
    tell     is called with a sentence before code is imported for the first time
    refused  what was named and not imported
    """

    allowed: bool = True
    tell: Callable[[str], None] | None = None
    refused: list[str] = field(default_factory=list)
    told: set[str] = field(default_factory=set)

    def reset(self) -> None:
        """A new command begins."""
        self.allowed, self.tell = True, None
        self.refused.clear()
        self.told.clear()

    def announce(self, target: str, what: str) -> None:
        """Called before `target` is imported; `what` begins the message of a refusal."""
        place = target.rpartition(":")[0]
        if place.partition(".")[0] == OWN and not place.endswith(".py"):
            return
        if not self.allowed:
            self.refused.append(target)
            raise ForeignCodeRefused(
                f"{what}: --no-plugins imports no foreign code, and {shown(target)} is not part of "
                "flmarket"
            )
        if self.tell is not None and place not in self.told and place not in sys.modules:
            self.told.add(place)
            self.tell(f"importing foreign code: {target}")


policy = ForeignCode()
