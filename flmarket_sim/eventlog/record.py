"""Records of the event log: dataclasses whose fields are columns, with visibility and meaning."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum, IntEnum, StrEnum
from typing import Any, ClassVar, dataclass_transform

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

# The value of a column: an array with one entry for each event, or one value for all of them.
# An array of objects may hold None, which is null in the log.
Reals = float | NDArray[Any] | None
Integers = int | NDArray[Any] | None
Booleans = bool | NDArray[Any] | None
Lists = list[float] | NDArray[np.object_] | None


class Role(StrEnum):
    """The roles of participants, in the order in which documentation lists them."""

    BUYER = "buyer"
    BROKER = "broker"
    OWNER = "owner"


class Seen(Enum):
    """Who in the market can see a value of an event."""

    BOTH = "sender and receiver"  # the message contains it, or it follows from the message
    SENDER = "sender"  # the sender knows it and does not reveal it
    NOBODY = "nobody"  # only the simulator can know it


@dataclass(frozen=True)
class Column:
    """A column, and who can see it.

    A column with `names` is a dictionary column: its values are written as positions in `names`.
    """

    name: str
    type: pa.DataType
    seen: Seen
    meaning: str
    names: tuple[str, ...] | None = None


def column(
    type: pa.DataType, seen: Seen, meaning: str, names: tuple[str, ...] | None = None
) -> Any:
    """Declares the field of a record that is a column of the log."""
    return field(metadata={"column": (type, seen, meaning, names)})


def with_nulls(values: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[np.object_]:
    """A column with null where a value is missing."""
    nullable = values.astype(object)
    nullable[missing] = None
    return nullable


def labels(codes: type[IntEnum]) -> tuple[str, ...]:
    """The names of codes as the log shows them: BELOW_COST is "below cost"."""
    return tuple(code.name.lower().replace("_", " ") for code in codes)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(column,))
class Record:
    """The payload of one event, or of many events of one kind as columns. Fields are given by name.

    A subclass declares the columns of a kind, and the roles of its sender and receiver.
    """

    kind: ClassVar[str]
    parties: ClassVar[tuple[tuple[Role, Role], ...]]
    columns: ClassVar[tuple[Column, ...]]

    def __init_subclass__(cls, *, kind: str, parties: tuple[tuple[Role, Role], ...]) -> None:
        made = dataclass(frozen=True, kw_only=True, eq=False)(cls)
        cls.kind, cls.parties = kind, parties
        cls.columns = tuple(Column(f.name, *f.metadata["column"]) for f in fields(made))  # type: ignore[arg-type]

    def cells(self) -> list[Any]:
        """The values of the columns, in the order of the schema."""
        return list(vars(self).values())
