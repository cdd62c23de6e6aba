"""The names of weights that come with this package, and the files behind them.

Nothing is read here, and torch is not imported: whoever only wants to know which file an auction
will read can ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flmarket_sim.errors import InputError

SHIPPED = Path(__file__).with_name("weights")
DEFAULTS = {  # the weights of an auction that names none: the defaults of the constructors
    "regretnet": "general",
    "m-regretnet": "general",
    "dm-regretnet": "general",
    "seq-price": "general",
    "record-price": "paper-part",
}
REPORTED = "reported"  # the `size` of seq-price that has weights of its own


def shipped(mechanism: str, rule: str) -> dict[str, Path]:
    """Shipped weights by name, for a mechanism and a variant of it (for seq-price, its `size`)."""
    variant = (mechanism, rule) == ("seq-price", REPORTED)
    end = f".{mechanism}.{rule}.safetensors" if variant else f".{mechanism}.safetensors"
    return {path.name.removesuffix(end): path for path in sorted(SHIPPED.glob(f"*{end}"))}


def weights_file(weights: str | Path, mechanism: str, rule: str) -> Path:
    """The file of weights that are named, or given as a file."""
    known = shipped(mechanism, rule)
    path = known.get(str(weights), Path(weights))
    if not path.is_file():
        names = ", ".join(known) or "none"
        raise InputError(
            f"there are no weights {str(weights)!r} for {mechanism!r} with {rule!r}: "
            f"neither a file nor one of {names}"
        )
    return path


def shipped_file(table: Mapping[str, Any]) -> tuple[str, Path] | None:
    """The shipped weights of an auction that is given as a table: their name, and their file.

    The name is the same on every machine, as `seq-price@general`. None stands for an auction that
    learns nothing, and for weights from elsewhere.
    """
    mechanism = str(table.get("name"))
    weights = str(table.get("weights", DEFAULTS.get(mechanism, "")))
    rule = REPORTED if table.get("size") == REPORTED else ""
    file = shipped(mechanism, rule).get(weights) if mechanism in DEFAULTS else None
    if file is None:
        return None
    variant = mechanism == "seq-price" and rule == REPORTED
    return f"{mechanism}@{weights}" + (f"[size={rule}]" if variant else ""), file
