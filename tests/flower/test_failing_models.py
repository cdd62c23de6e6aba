"""A server learns nothing of an owner's records from what fails on her side."""

import numpy as np
import pytest
import torch

from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.flower.client import client_app, content_of
from flmarket_sim.flower.client_market import ClientMarket
from flmarket_sim.flower.library import flower
from flmarket_sim.flower.messages import RECORD, BidReply, BidRequest, Hello, packed, unpacked
from flmarket_sim.flower.owner import Owner
from tests.flower.test_own_ledger import TERMS, bid, owner, sale, sold
from tests.support.loopback_grid import know_the_task

THREE = np.arange(10) % 3  # class numbers


class FailsOnLargeNumbers(torch.nn.Module):
    """A model of her own whose failure depends on her records."""

    def __init__(self, features, classes):
        super().__init__()
        self.layer = torch.nn.Linear(features, classes)

    def forward(self, x):
        return self.layer(x * torch.ones(6, dtype=x.dtype)[x.long()])


@pytest.mark.parametrize("kind", [Hello, BidRequest])
def test_no_word_of_what_fails_on_her_side_leaves_it(kind, tmp_path, capsys):
    """Flower sends the words of an exception to the server."""

    def fails(context):
        raise ValueError("could not convert string to float: 'HIV positive'")

    know_the_task()
    app = client_app(fails)
    context = flower().Context(
        run_id=1, node_id=1, node_config={}, state=flower().RecordDict(), run_config={}
    )
    content = content_of(Hello(run="r") if kind is Hello else bid())
    message = flower().Message(content, dst_node_id=1, message_type=kind.type)
    if kind is Hello:
        with pytest.raises(FlmarketError) as refused:
            app(message, context)
        assert "HIV" not in str(refused.value) and refused.value.__cause__ is None
    else:
        reply = app(message, context)
        assert BidReply.of(dict(reply.content.config_records[RECORD])) == BidReply()
    assert "HIV positive" in capsys.readouterr().err


def asked_for(classes):
    terms = TERMS.model_copy(update={"classes": classes})
    return bid(terms=terms), sale(terms=terms, parameters=packed(np.zeros(4 * classes)))


@pytest.mark.parametrize("classes", [1, 2, 3, 4])
def test_no_number_of_classes_finds_out_her_largest(classes, tmp_path):
    """Whatever a server asks for, what it sees is a sale that is booked."""
    market = ClientMarket(owner(tmp_path, y=THREE))
    offer, order = asked_for(classes)
    assert market.bid(offer).values is not None
    reply = market.sell(order)
    assert reply.accepted and reply.delivered and sold(market) == 1.0
    assert np.isfinite(unpacked(reply.gradient, 4 * classes)).all()


def test_she_hears_that_zeros_were_sold(tmp_path, capsys):
    market = ClientMarket(owner(tmp_path, y=THREE))
    offer, order = asked_for(2)
    market.bid(offer)
    market.sell(order)
    assert "zeros are sold in its place" in capsys.readouterr().err
    gradients = [cells for *_, kind, _, cells in market.ledger.events("r") if kind == "gradient"]
    assert [cells["finite"] for cells in gradients] == [False]


def test_a_model_that_fails_on_some_records_sells_as_one_that_does_not(tmp_path, capsys):
    x = np.linspace(0.0, 9.0, 30).reshape(10, 3)
    replies = []
    for name, features in {"fails": x, "works": x / 9.0}.items():
        market = ClientMarket(owner(tmp_path / name, x=features, model=FailsOnLargeNumbers))
        market.bid(bid())
        replies.append(market.sell(sale()))
        assert sold(market) == 1.0
    assert [(one.accepted, one.delivered, len(one.gradient)) for one in replies] == 2 * [
        (True, True, 64)
    ]
    assert capsys.readouterr().err.count("model failed") == 1


def test_a_gradient_without_end_sells_as_any_other(tmp_path):
    market = ClientMarket(owner(tmp_path, x=np.full((10, 3), 1e38)))
    market.bid(bid())
    reply = market.sell(sale(parameters=packed(np.full(8, 1e300))))
    assert np.isfinite(unpacked(reply.gradient, 8)).all() and sold(market) == 1.0


def test_she_bids_by_the_classes_that_she_tells_whatever_is_in_her_records(tmp_path):
    for number, y in enumerate((THREE, THREE * 0)):
        market = ClientMarket(owner(tmp_path / str(number), y=y, classes=3))
        for classes in (2, 4):
            with pytest.raises(InputError, match=f"{classes} classes, and .* are of 3"):
                market.bid(asked_for(classes)[0])
        assert market.bid(asked_for(3)[0]).values is not None


@pytest.mark.parametrize(
    "wrong",
    [
        {"y": THREE, "classes": 2}, {"y": THREE - 1}, {"y": THREE + 0.5}, {"y": THREE * np.nan},
        {"x": np.zeros((9, 3))}, {"x": np.zeros(10)}, {"x": [["a"] * 3] * 10},
    ],
)  # fmt: skip
def test_records_that_are_none_are_found_on_her_side(tmp_path, wrong):
    with pytest.raises(InputError, match="of owner 'ann' must"):
        Owner(**{"name": "ann", "x": np.zeros((10, 3)), "y": THREE, "folder": tmp_path, **wrong})
