"""Records come back as they were sent, and nothing else is read as one."""

import numpy as np
import pytest

from flmarket_sim.flower.client import content_of
from flmarket_sim.flower.messages import (
    BidReply,
    BidRequest,
    Choice,
    Hello,
    MessageError,
    OfferRequest,
    Present,
    SaleReply,
    SaleRequest,
    packed,
    unpacked,
)
from tests.flower.test_own_ledger import TERMS, bid, sale

RECORDS = [
    Hello(run="r"),
    Present(name="ann", number=3),
    Present(name="bob"),
    bid(),
    bid(paid_buyers=[0], paid_rounds=[1], paid=[2.5]),
    BidReply(),
    BidReply(values=[0.1, 0.2], privacy_budget=1.0, data_size=7),
    OfferRequest(
        run="r", buyer=0, round=1, terms=TERMS, privacy_losses=[0.5, 1.0], payments=[1.0, 2.0],
        money=9.0, form="part", records=3.0,
    ),
    Choice(privacy_loss=0.0, payment=0.0, records=1.0),
    sale(),
    SaleReply(accepted=True, delivered=True, gradient=packed(np.array([0.1, -1e300]))),
]  # fmt: skip


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_comes_back_through_a_message_of_flower(record):
    content = content_of(record)
    plain = dict(content.config_records["flmarket"])
    assert type(record).of(plain) == record


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        (BidReply, {"values": [1.0], "privacy_budget": -1.0, "data_size": 3}),
        (BidReply, {"values": [float("nan")], "privacy_budget": 1.0, "data_size": 3}),
        (BidReply, {"values": [float("inf")], "privacy_budget": 1.0, "data_size": 3}),
        (BidReply, {"values": [1.0], "privacy_budget": 1.0, "data_size": 0}),
        (BidReply, {"more": 1}),
        (Choice, {"privacy_loss": 1.0}),
        (SaleReply, {"accepted": "yes", "delivered": True}),
        (BidRequest, bid().plain() | {"terms": "{"}),
        (BidRequest, bid().plain() | {"terms": "[1]"}),
        (SaleRequest, sale().plain() | {"privacy_loss": 0.0}),
        (SaleRequest, sale().plain() | {"records": 0}),
        (Hello, {}),
    ],
)
def test_what_is_no_record_is_refused(kind, plain):
    with pytest.raises(MessageError, match=f"not a {kind.__name__}"):
        kind.of(plain)


def test_a_vector_comes_back_bit_by_bit():
    vector = np.random.default_rng(0).normal(size=20) * 10.0 ** np.arange(-10, 10)
    assert (unpacked(packed(vector), 20) == vector).all()
    for wrong in (packed(vector[:3]), packed(vector)[:-1]):
        with pytest.raises(MessageError, match="not 20 numbers"):
            unpacked(wrong, 20)
    with pytest.raises(MessageError, match="not finite"):
        unpacked(packed(np.array([np.nan])))
