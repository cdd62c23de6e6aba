"""Short words for the declarations of events: types, who sees a value, and who writes to whom."""

from __future__ import annotations

import pyarrow as pa

from flmarket_sim.eventlog.record import Role, Seen

BOTH, SENDER, NOBODY = Seen
BUYER_TO_BROKER, BROKER_TO_OWNER = ((Role.BUYER, Role.BROKER),), ((Role.BROKER, Role.OWNER),)
OWNER_TO_BROKER, BROKER_TO_BUYER = ((Role.OWNER, Role.BROKER),), ((Role.BROKER, Role.BUYER),)
OWNER_TO_OWNER, BUYER_TO_BUYER = ((Role.OWNER, Role.OWNER),), ((Role.BUYER, Role.BUYER),)
F64, I8, I32, I64, BOOL = pa.float64(), pa.int8(), pa.int32(), pa.int64(), pa.bool_()
LIST = pa.list_(F64)
