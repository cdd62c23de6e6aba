"""The page in a real browser: it draws, clicks hide series, text filters rows, names stay text.

The tests need Chromium.
"""

import shutil

import pytest

from flmarket_sim.report.html import page

from .conftest import EVIL

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip(
        "selenium.webdriver", reason="selenium is not installed (requirements-dev.txt)"
    )
    if not CHROMIUM or not DRIVER:
        pytest.skip("there is no chromium with its chromedriver on this machine")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser, tmp_path):
    def show(*inputs, width=1200, dark=False):
        file = page.write(list(inputs), tmp_path / "page.html", force=True)
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        browser.get(file.as_uri())
        browser.execute_async_script(
            "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
        )
        assert browser.execute_script("return document.documentElement.dataset.ready") == "yes"
        assert (
            browser.get_log("browser") == []
        )  # no error, and nothing that the policy had to refuse
        return browser

    return show


def of(browser, selector):
    return browser.find_elements("css selector", selector)


def test_a_click_on_the_legend_hides_a_series_and_shows_it_again(opened, quickstart, paid_as_bid):
    browser = opened(quickstart, paid_as_bid)
    lines = "#chart-error-by-round path.series"
    button = of(browser, "#chart-error-by-round .legend button")[1]
    assert len(of(browser, lines)) == 2
    button.click()
    assert len(of(browser, lines)) == 1 and button.get_attribute("aria-pressed") == "false"
    button.click()
    assert len(of(browser, lines)) == 2


def test_text_filters_rows_and_a_click_sorts_them(opened, liars):
    browser = opened(liars)
    rows = "#table-best-lies tbody tr"
    every = len(of(browser, rows))
    of(browser, "#table-best-lies input")[0].send_keys("best-response")
    kept = of(browser, rows)
    assert 0 < len(kept) < every and all("best-response" in row.text for row in kept)
    heading = of(browser, "#table-rounds th button")[1]
    browser.execute_script("arguments[0].click()", heading)
    assert of(browser, "#table-rounds tbody tr td:nth-child(2)")[0].text == "4"
    browser.execute_script("arguments[0].click()", heading)
    assert of(browser, "#table-rounds tbody tr td:nth-child(2)")[0].text == "1"


def test_pointing_at_a_chart_says_what_is_there(opened, quickstart):
    browser = opened(quickstart)
    browser.execute_script("""
        const mark = document.querySelector("#chart-error-by-budget circle");
        const box = mark.getBoundingClientRect();
        const at = {clientX: box.x + 2, clientY: box.y + 2, bubbles: true};
        mark.dispatchEvent(new PointerEvent("pointermove", at));""")
    told = of(browser, "#tip")[0].text
    assert "round" in told and "error bound" in told


def test_names_are_text_and_nothing_of_them_runs(opened, evil):
    browser = opened(evil)
    assert of(browser, "h1")[0].text == EVIL and of(browser, "img") == []
    assert len(of(browser, "script")) == 2  # an alert would have failed every step above


def test_dark_and_light_differ_and_the_button_changes_them(opened, quickstart):
    paper = "return getComputedStyle(document.body).backgroundColor"
    light = opened(quickstart).execute_script(paper)
    browser = opened(quickstart, dark=True)
    assert browser.execute_script(paper) != light
    of(browser, "#theme")[0].click()
    assert browser.execute_script(paper) == light


def test_on_a_phone_nothing_sticks_out_and_a_screenshot_shows_figures(
    opened, liars, probe_file, study, sweep, tmp_path
):
    for inputs in ((liars,), (probe_file,), (study,), (sweep,), (liars, sweep)):
        browser = opened(*inputs, width=390)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        assert all(svg.size["height"] > 50 for svg in of(browser, ".figure > svg"))
        assert (
            browser.save_screenshot(str(tmp_path / "phone.png"))
            and (tmp_path / "phone.png").stat().st_size > 5_000
        )
