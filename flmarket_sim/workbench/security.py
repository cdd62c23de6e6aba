"""Who gets in: one browser on this machine that knows the token of this start.

Every request has to name this server as its host (a foreign name that is bound to 127.0.0.1 is
refused), must not come from a page of another origin, and needs the token: once in the address,
from then on in a cookie that scripts cannot read and that other sites cannot send.
"""

from __future__ import annotations

import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flmarket_sim.report.html.page_files import EMPTY_STYLE

LARGEST_REQUEST = 2_000_000  # bytes; a scenario file has at most one million
POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self' {EMPTY_STYLE}; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
NO_TOKEN = (
    "This workbench needs the address with the token that `flmarket workbench` printed in its "
    "terminal. Open that address.\n"
)


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(32)


class Refusal(Exception):
    """Why a request is refused, as a status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


class Gate:
    """The ASGI application behind the checks. `port` is the one that the server listens on."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self.app, self._token = app, token
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        self.cookie = f"flmarket-workbench-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        try:
            fresh = self._check(scope, headers)
            bounded = _bounded(receive, headers)
        except Refusal as refusal:
            response = PlainTextResponse(refusal.sentence, refusal.status, HEADERS)
            await response(scope, receive, send)
            return
        cookie = self._cookie() if fresh else None

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    answer[name] = value
                answer.setdefault("cache-control", "no-store")
                if cookie is not None:
                    answer.append("set-cookie", cookie)
            await send(message)

        await self.app(scope, bounded, guarded)

    def _check(self, scope: Scope, headers: Headers) -> bool:
        """Refuses a request, or says whether it came with the token in its address."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            raise Refusal(421, "This workbench answers on this machine only.\n")
        own = f"http://{hosts[0].lower()}"
        origin = headers.get("origin")
        if origin is not None and origin.lower() != own:
            raise Refusal(
                403, "A page of another origin asked; the workbench does not answer it.\n"
            )
        if scope["method"] not in ("GET", "HEAD") and origin is None:
            raise Refusal(403, "A request that changes something must name its origin.\n")
        if scope["method"] in ("GET", "HEAD") and scope["path"] == "/":
            query = parse_qs(scope["query_string"].decode("latin-1"))
            if "token" in query:
                if not self._knows(query["token"][0]):
                    raise Refusal(403, NO_TOKEN)
                return True
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise Refusal(
                403, "A page of another origin asked; the workbench does not answer it.\n"
            )
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            raise Refusal(403, NO_TOKEN) from None
        if self.cookie not in cookies or not self._knows(cookies[self.cookie].value):
            raise Refusal(403, NO_TOKEN)
        return False

    def _knows(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self._token.encode())

    def _cookie(self) -> str:
        return f"{self.cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"


def _bounded(receive: Receive, headers: Headers) -> Receive:
    """`receive`, which ends a request whose body is larger than the bound."""
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > LARGEST_REQUEST:
        raise Refusal(413, f"A request has at most {LARGEST_REQUEST:,} bytes.\n")
    got = 0

    async def limited() -> Message:
        nonlocal got
        message = await receive()
        got += len(message.get("body", b""))
        return {"type": "http.disconnect"} if got > LARGEST_REQUEST else message

    return limited
