"""Chromium for tests, without a screen and without connections of its own."""

import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@contextmanager
def chromium(profile, *flags, downloads=None):
    """A driver of Chromium with a folder as profile; it saves files in the folder `downloads`.

    The test is skipped where Chromium, its driver or selenium is missing.
    """
    webdriver = pytest.importorskip(
        "selenium.webdriver", reason="selenium is not installed (requirements-dev.txt)"
    )
    if not CHROMIUM or not DRIVER:
        pytest.skip("there is no chromium with its chromedriver on this machine")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, *flags, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    if downloads is not None:
        prefs = {
            "download.default_directory": str(downloads),
            "profile.default_content_setting_values.automatic_downloads": 1,
        }
        options.add_experimental_option("prefs", prefs)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()
