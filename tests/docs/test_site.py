"""The site is built from the pages, has no broken link, and loads nothing from other places."""

import json
import os
import re
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from docs import api, site_hooks
from tests.support.browser import chromium
from tests.support.paths import ROOT
from tests.support.patience import wait_until

LOADED = re.compile(r'<(?:script|link|img|iframe)\b[^>]*?(?:src|href)="([^"]+)')
LINKED = re.compile(r'<(?:a|img)\b[^>]*?(?:src|href)="([^"#?]+)')


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as `make docs` builds it: a broken link or anchor is an error."""
    out = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return out


def test_every_page_is_on_the_site(site):
    for page in (ROOT / "docs").rglob("*.md"):
        place = page.relative_to(ROOT / "docs").with_suffix(".html")
        place = place.with_name("index.html") if page.name == "README.md" else place
        assert (site / place).exists(), place


def test_pages_load_nothing_from_other_places(site):
    for page in site.rglob("*.html"):
        loaded = re.findall(LOADED, page.read_text())
        foreign = [address for address in loaded if re.match(r"\w+:|//", address)]
        assert not foreign, f"{page.relative_to(site)} loads {foreign}"


def test_links_on_the_site_lead_to_files(site):
    for page in site.rglob("*.html"):
        if page.name == "404.html":
            continue
        for address in re.findall(LINKED, page.read_text()):
            if not re.match(r"\w+:|//", address):
                assert (page.parent / address).exists(), f"{page.relative_to(site)}: {address}"


def test_the_search_finds_pages_and_names(site):
    index = json.loads((site / "search/search_index.json").read_text())
    text = " ".join(entry["title"] + " " + entry["text"] for entry in index["docs"])
    for word in ("proportional-share", "draw_profiles", "privacy_budget", "lifetime_budget"):
        assert word in text


def test_the_search_works_in_a_browser_without_a_network(site, tmp_path):
    here = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost"
    handler = partial(SimpleHTTPRequestHandler, directory=str(site))
    with (
        ThreadingHTTPServer(("localhost", 0), handler) as server,
        chromium(tmp_path, here) as browser,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser.get(f"http://localhost:{server.server_port}/index.html?q=proportional-share")
        found = "return document.querySelectorAll('.md-search-result__item').length"
        wait_until(lambda: browser.execute_script(found) >= 3)
        server.shutdown()


def test_comments_with_the_origin_of_numbers_are_not_on_the_site(site):
    for page in ("findings.html", "learned-auctions.html", "theory.html"):
        assert not re.search(r"&lt;!--|<!--[=?]|-->\w", (site / page).read_text()), page


def test_docstrings_are_on_the_page_of_names(site):
    page = (site / "api.html").read_text()
    for name in ("flmarket_sim.auctions.auction.Auction", "flmarket_sim.market.run_scenario.run"):
        assert f'id="{name}"' in page


def test_the_tables_of_names_are_current():
    assert api.page(api.PAGE.read_text()) == api.PAGE.read_text(), "run 'python -m docs.api'"


def test_a_comment_goes_and_code_stays():
    text = "a <!--= x -->1<!--/--> b\n<!-- end -->\n`<!-- c -->`\n```\n<!-- d -->\n```\n"
    assert site_hooks.without_comments(text) == "a 1 b\n`<!-- c -->`\n```\n<!-- d -->\n```\n"


def test_files_outside_of_docs_are_copied_once():
    assert {"examples/random_sign.py", "CONTRIBUTING.md"} <= set(site_hooks.copies())
    assert (
        site_hooks.place_on_site("examples/random_sign.py")
        == "repository/examples/random_sign.py.md"
    )
    assert site_hooks.place_on_site("docs/theory.md") == "theory.md"
