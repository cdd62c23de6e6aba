"""Columns of a log beside those of a twin, and where they differ."""

import numpy as np
import pyarrow as pa

from flmarket_sim.eventlog import KINDS
from flmarket_sim.eventlog.schema import arrow_schema

TYPES = {kind: {f.name: f.type for f in arrow_schema(kind, ())} for kind in KINDS}


def both_columns(twin, kind):
    """The columns of a kind in the log and by the twin, without `seq`."""
    names = [name for name in TYPES[kind] if name != "seq"]
    expected = [row for key in twin.keys for row in getattr(twin, kind)(key)]
    assert all(row.keys() == set(names) for row in expected), kind
    return tuple(
        {name: [row[name] for row in rows] for name in names} for rows in (twin.log[kind], expected)
    )


def differences(kind, logged, expected):
    """The columns in which two tables differ, rows in an order of their integers and names."""
    if len(logged["time"]) != len(expected["time"]):
        return ["number of events"]
    ordering = [
        name
        for name in logged
        if pa.types.is_integer(TYPES[kind][name]) or pa.types.is_dictionary(TYPES[kind][name])
    ]

    def ordered(table):
        rows = range(len(table["time"]))
        order = sorted(rows, key=lambda row: [str(table[name][row]) for name in ordering])
        return {name: [values[row] for row in order] for name, values in table.items()}

    pairs = zip(ordered(logged).items(), ordered(expected).values(), strict=True)
    return [name for (name, one), other in pairs if not same(TYPES[kind][name], one, other)]


def same(arrow_type, one, other):
    if pa.types.is_list(arrow_type):
        lengths = [[-1 if v is None else len(v) for v in values] for values in (one, other)]
        flat = [[x for v in values for x in v or []] for values in (one, other)]
        return lengths[0] == lengths[1] and same(pa.float64(), *flat)
    if not pa.types.is_floating(arrow_type):
        return one == other
    numbers = [
        np.array([np.nan if v is None else v for v in values], float) for values in (one, other)
    ]
    return np.allclose(*numbers, rtol=1e-7, atol=1e-12, equal_nan=True)
