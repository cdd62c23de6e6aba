"""The workbench in a real browser: a scenario is changed, started and watched; a server is killed.

The tests need Chromium.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from flmarket_sim.eventlog import read_run
from tests.support.browser import chromium
from tests.support.patience import PATIENCE

from .conftest import LONG, TEXT

pytestmark = pytest.mark.processes


class Server:
    """`flmarket workbench` as a process."""

    def __init__(self, folder):
        command = [sys.executable, "-m", "flmarket_sim.cli", "workbench", str(folder)]
        self.process = subprocess.Popen(
            [*command, "--no-browser", "--port", "0"], stdout=subprocess.PIPE, text=True
        )
        self.printed = ""
        while not (found := re.search(r"http://\S+", self.printed)):
            line = self.process.stdout.readline()
            assert line, "the workbench did not start"
            self.printed += line
        self.address = found[0]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@pytest.fixture(scope="module")
def shared(tmp_path_factory, finished):
    """One server for the tests that do not end it, over a folder with a finished run."""
    folder = tmp_path_factory.mktemp("bench") / "results"
    shutil.copytree(finished, folder / "small")
    server = Server(folder)
    yield server, folder
    server.kill()


def of(browser, selector):
    return browser.find_elements("css selector", selector)


def until(condition, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(Exception):  # an element may be replaced while it is looked at
            if found := condition():
                return found
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def opened(browser, server, place, width=1200):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    browser.get_log("browser")  # a killed server of another test is not this one's error
    browser.get(server.address)
    browser.execute_script("location.hash = arguments[0]", place)
    until(lambda: browser.execute_script("return document.documentElement.dataset.shown") == place)
    return browser


def typed(browser, field, text):
    browser.execute_script(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))",
        field, text,
    )  # fmt: skip


def nothing_was_refused(browser):
    return browser.get_log("browser") == []


def test_the_token_leaves_the_address_and_results_are_listed(browser, shared):
    opened(browser, shared[0], "#/")
    assert "token" not in browser.current_url
    until(lambda: of(browser, ".results tbody a"))
    assert of(browser, ".results tbody a")[0].text == "small"
    until(lambda: browser.execute_script("return typeof Plotly") == "object")
    paint = browser.execute_script(
        "return performance.getEntriesByName('first-contentful-paint')[0].startTime"
    )
    assert paint < 5_000 and nothing_was_refused(browser)


def test_an_error_shows_beside_its_field_then_the_run_is_started_and_watched(browser, shared):
    server, folder = shared
    opened(browser, server, "#/new/quickstart")
    rounds = until(lambda: of(browser, "input[data-path=rounds]"))[0]
    rounds.clear()
    rounds.send_keys("0")
    wrong = until(lambda: of(browser, ".field .wrong"))[0]
    assert "greater than or equal to 1" in wrong.text
    assert rounds.get_attribute("aria-invalid") == "true"
    assert not of(browser, "#start-run")[0].is_enabled()
    of(browser, "#as-toml")[0].click()
    text = of(browser, "textarea")[0]
    assert "rounds = 0" in text.get_attribute("value")
    typed(browser, text, TEXT)
    start = until(lambda: [one for one in of(browser, "#start-run") if one.is_enabled()])[0]
    assert "3 rounds" in until(lambda: of(browser, ".verdict.good"))[0].text
    start.click()
    until(lambda: of(browser, ".is-finished"))
    until(lambda: of(browser, "#chart-money .main-svg"))
    until(lambda: of(browser, "#table-rounds tbody tr"))
    made = [path for path in folder.iterdir() if path.name.startswith("small-")]
    assert [read_run(path)["outcome"] for path in made] == ["finished"]
    assert nothing_was_refused(browser)


def test_a_run_goes_on_when_the_server_is_killed_and_is_found_stopped_and_resumed(
    browser, tmp_path
):
    folder = tmp_path / "results"
    first = Server(folder)
    try:
        opened(browser, first, "#/new/quickstart")
        until(lambda: of(browser, "#as-toml"))[0].click()
        typed(browser, until(lambda: of(browser, "textarea"))[0], LONG)
        until(lambda: "100,000 rounds" in of(browser, ".verdict.good")[0].text)
        of(browser, "#start-run")[0].click()
        seen = "return Number(document.documentElement.dataset.rounds || 0)"
        until(lambda: browser.execute_script(seen) > 0)
        until(lambda: of(browser, ".feed li"))
    finally:
        first.kill()
    second = Server(folder)
    try:
        name = next(path.name for path in folder.iterdir() if path.is_dir() and path.name[0] != ".")
        opened(browser, second, f"#/result/{name}")
        before = until(lambda: browser.execute_script(seen))
        until(lambda: browser.execute_script(seen) > before)  # it goes on without its server
        until(lambda: of(browser, "#stop"))[0].click()
        until(lambda: of(browser, ".is-interrupted"))
        assert read_run(folder / name)["outcome"] == "interrupted"
        until(lambda: of(browser, "#resume"))[0].click()
        until(lambda: of(browser, ".is-running") and browser.execute_script(seen) > before)
        until(lambda: of(browser, "#stop"))[0].click()
        until(lambda: read_run(folder / name)["outcome"] == "interrupted")
    finally:
        second.process.send_signal(signal.SIGINT)
        second.process.wait(PATIENCE)  # what is being computed comes to its end first
        second.process.stdout.close()
        _end_jobs(folder)


def test_moving_a_bid_moves_the_outcomes(browser, shared):
    opened(browser, shared[0], "#/playground")
    played = "return document.documentElement.dataset.played"
    before = until(lambda: browser.execute_script(played))
    mine = until(lambda: of(browser, ".bids .mine"))[0]
    mine.send_keys("\ue013")  # arrow up: she asks for more
    after = until(lambda: (now := browser.execute_script(played)) != before and now)
    assert after != before
    until(
        lambda: of(browser, "#chart-everybody .main-svg") and of(browser, "#chart-curve .main-svg")
    )
    assert nothing_was_refused(browser)


def test_a_question_is_answered_and_a_wrong_one_gets_a_sentence(browser, shared):
    opened(browser, shared[0], "#/sql/small")
    question = until(lambda: of(browser, "textarea"))[0]
    typed(browser, question, "select count(*) as many from rounds")
    of(browser, "#ask")[0].click()
    assert until(lambda: of(browser, "#table-answer tbody td"))[0].text == "4"
    typed(browser, question, "select nothing from rounds")
    of(browser, "#ask")[0].click()
    assert "nothing" in until(lambda: of(browser, ".notice"))[0].text


def test_on_a_phone_nothing_sticks_out(browser, shared):
    for place in ("#/", "#/new/quickstart", "#/result/small", "#/playground", "#/probe", "#/sql"):
        opened(browser, shared[0], place, width=390)
        until(lambda: not of(browser, "main .about") or of(browser, "main h1")[0].text)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390, place


def _end_jobs(folder):
    """Ends what a failed test has left running, by its recorded process."""
    from flmarket_sim.workbench.jobs import Jobs

    jobs = Jobs(folder)
    for job in jobs.all():
        if jobs.running(job.name):
            os.kill(job.process, signal.SIGKILL)
