"""The client's side as a ClientApp of Flower: `app = client_app(owner)`."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.flower.client_market import ClientMarket
from flmarket_sim.flower.library import flower, say
from flmarket_sim.flower.messages import (
    RECORD,
    BidReply,
    BidRequest,
    Choice,
    Hello,
    OfferRequest,
    SaleReply,
    SaleRequest,
    Settlement,
    Wire,
)
from flmarket_sim.flower.owner import Owner

MakesOwner = Callable[[Any], Owner]
Asked = TypeVar("Asked", bound=Wire)


def client_app(owner: MakesOwner) -> Any:
    """A ClientApp for the owner whom `owner(context)` makes; `context.node_config` has the
    settings of her SuperNode. A node that connects again has another number and the same settings,
    so these say who she is."""
    markets: dict[tuple[tuple[str, Any], ...], ClientMarket] = {}

    def market(context: Any) -> ClientMarket:
        settings = tuple(sorted(context.node_config.items()))
        if settings not in markets:
            markets[settings] = ClientMarket(owner(context))
        return markets[settings]

    app = market_app(market)
    app.makes_owner = owner  # for `try_out`
    return app


def try_out(app: Any, settings: Mapping[str, Any]) -> None:
    """Makes the owner behind an app of `client_app` once, with the settings of a node, so that a
    wrong setting or folder is found before anybody asks her anything."""
    owner = getattr(app, "makes_owner", None)
    if owner is None:
        return
    library = flower()
    context = library.Context(
        run_id=0, node_id=0, node_config=dict(settings), state=library.RecordDict(), run_config={}
    )
    try:
        made = owner(context)
    except FlmarketError:
        raise
    except Exception as error:  # her own code may fail in any way
        what = f"without the setting {error}" if isinstance(error, KeyError) else f"{error!r}"
        raise InputError(
            f"the client's app cannot make its owner: {what}; see `override`"
        ) from None
    ClientMarket(made).ledger.close()


def market_app(market: Callable[[Any], ClientMarket]) -> Any:
    """A ClientApp that hands each message to the market of the owner behind a context."""
    app = flower("flwr.clientapp").ClientApp()
    nothing = Choice(privacy_loss=0.0, payment=0.0, records=1.0)
    declined = SaleReply(accepted=False, delivered=False)
    app.query("hello")(partial(_answer, market, Hello, ClientMarket.hello, None))
    app.query("bid")(partial(_answer, market, BidRequest, ClientMarket.bid, BidReply()))
    app.query("offer")(partial(_answer, market, OfferRequest, ClientMarket.choose, nothing))
    app.train("sell")(partial(_answer, market, SaleRequest, ClientMarket.sell, declined))
    app.query("settle")(partial(_answer, market, Settlement, ClientMarket.settle, None))
    return app


def _answer(
    market: Callable[[Any], ClientMarket],
    kind: type[Asked],
    answer: Callable[[ClientMarket, Asked], Wire],
    refusal: Wire | None,
    message: Any,
    context: Any,
) -> Any:
    """Answers a message of Flower. What goes wrong is said to the owner; the broker gets a refusal,
    which does not say why: Flower would send the words of an exception on."""
    try:
        plain = dict(message.content.config_records.get(RECORD, {}))
        one = market(context)
        with one.lock, one.timed():
            reply = answer(one, kind.of(plain))
    except Exception as error:  # her own code may fail in any way
        what = str(error) if isinstance(error, FlmarketError) else traceback.format_exc()
        say(f"{kind.type} is refused: {what}")
        if refusal is None:
            raise FlmarketError("refused; the owner's own output has the reason") from None
        reply = refusal
    return flower().Message(content_of(reply), reply_to=message)


def content_of(record: Wire) -> Any:
    """The content of a message of Flower with this record."""
    app = flower()
    return app.RecordDict({RECORD: app.ConfigRecord(record.plain())})
