"""Only this machine's browser gets in: with the token, from the workbench's own page."""

import pytest
from starlette.testclient import TestClient

from flmarket_sim.workbench.app import application
from flmarket_sim.workbench.security import LARGEST_REQUEST, Gate, new_token

from .conftest import HOST, PORT, TOKEN

COOKIE = f"flmarket-workbench-{PORT}"


@pytest.fixture
def stranger(folder):
    return TestClient(application(folder, TOKEN, PORT), base_url=f"http://{HOST}")


def test_without_the_token_nothing_is_answered(stranger):
    for path in ("/", "/api/folder", "/static/main.js", "/plotly.js", "/?token=wrong", "/nowhere"):
        answer = stranger.get(path)
        assert answer.status_code == 403 and "token" in answer.text, path
        assert "set-cookie" not in answer.headers


def test_the_token_in_the_address_becomes_a_cookie_that_only_this_site_sends(stranger):
    answer = stranger.get("/", params={"token": TOKEN})
    assert answer.status_code == 200
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Path=/" in cookie
    assert stranger.get("/api/folder").status_code == 200


def test_a_token_counts_in_the_address_of_the_page_alone(stranger):
    assert stranger.get("/api/folder", params={"token": TOKEN}).status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1:80", "127.0.0.1", "10.0.0.7:8765"]
)
def test_another_name_for_this_machine_is_refused(client, host):
    """A foreign name that is bound to 127.0.0.1 must not reach the workbench."""
    assert client.get("/api/folder", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", [HOST, f"localhost:{PORT}", f"[::1]:{PORT}"])
def test_the_names_of_loopback_are_answered(client, host):
    headers = {"host": host, "origin": f"http://{host}", "cookie": f"{COOKIE}={TOKEN}"}
    assert client.get("/api/folder", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:9999", f"https://{HOST}"]
)
def test_pages_of_other_origins_are_refused(client, origin):
    assert client.get("/api/folder", headers={"origin": origin}).status_code == 403
    assert (
        client.post("/api/stop", json={"name": "x"}, headers={"origin": origin}).status_code == 403
    )


def test_another_port_of_this_machine_is_another_site(client):
    """Cookies do not tell ports apart; the browser's word about the asking page does."""
    del client.headers["origin"]
    headers = {"sec-fetch-site": "same-site"}
    assert client.get("/api/folder", headers=headers).status_code == 403


def test_a_change_without_an_origin_is_refused(client):
    del client.headers["origin"]
    assert client.post("/api/check", json={"text": ""}).status_code == 403
    assert client.get("/api/folder").status_code == 200


def test_large_requests_are_refused_with_and_without_their_length(client):
    large = b'{"text": "' + b"x" * LARGEST_REQUEST + b'"}'
    assert client.post("/api/check", content=large).status_code == 413
    pieces = (large[begin : begin + 100_000] for begin in range(0, len(large), 100_000))
    assert client.post("/api/check", content=pieces).status_code == 413


def test_every_answer_has_the_headers_that_keep_a_page_to_itself(client, stranger):
    for answer in (client.get("/"), client.get("/api/folder"), stranger.get("/")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy
        assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


def test_the_page_has_no_script_of_its_own_inside(client):
    page = client.get("/").text
    assert "<script>" not in page and "onclick" not in page and "style=" not in page
    assert TOKEN not in page


def test_tokens_differ_and_are_long():
    assert new_token() != new_token() and len(new_token()) >= 40


def test_what_is_not_http_is_not_answered():
    import asyncio

    async def never(*_):
        raise AssertionError("the application was reached")

    asyncio.run(Gate(never, TOKEN, PORT)({"type": "websocket"}, never, never))
