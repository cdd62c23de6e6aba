"""The page in a real browser: it draws, clicks hide series, buttons save, names stay text.

The tests need Chromium.
"""

import csv
from xml.etree import ElementTree

import pytest

from flmarket_sim.report.html import page
from tests.support.browser import chromium
from tests.support.patience import wait_until

from .conftest import EVIL


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def browser(tmp_path_factory, downloads):
    with chromium(tmp_path_factory.mktemp("chromium"), downloads=downloads) as driver:
        yield driver


@pytest.fixture
def opened(browser, downloads):
    def show(*inputs, width=1200, dark=False):
        file = page.write(list(inputs), downloads / "page.html", force=True)
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
        return browser

    yield show
    assert browser.get_log("browser") == []  # no error, and nothing that the policy had to refuse


def of(browser, selector):
    return browser.find_elements("css selector", selector)


def see_all(browser):
    """Scrolls through the page, so that every figure is drawn; gives how many there are."""
    figures = of(browser, ".figure")
    for figure in figures:
        browser.execute_script("arguments[0].scrollIntoView({behavior: 'instant'})", figure)
        wait_until(lambda figure=figure: figure.find_elements("css selector", ".main-svg, img"))
    return len(figures)


def look_at(browser, chart):
    """Scrolls to a chart and waits until it is drawn."""
    figure = of(browser, f"#chart-{chart}")[0]
    browser.execute_script(
        "arguments[0].scrollIntoView({behavior: 'instant', block: 'center'})", figure
    )
    wait_until(lambda: of(browser, f"#chart-{chart} .main-svg"))
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")


def lines(browser, chart):
    return of(browser, f"#chart-{chart} path.js-line")


def test_every_figure_is_drawn_when_it_comes_into_view(opened, quickstart):
    browser = opened(quickstart)
    assert not of(browser, "#chart-privacy .main-svg")
    assert see_all(browser) == 6
    assert len(of(browser, "#chart-payments .point")) > 20


def test_a_click_on_the_legend_hides_a_series_and_shows_it_again(opened, quickstart, paid_as_bid):
    browser = opened(quickstart, paid_as_bid)
    look_at(browser, "error-by-round")

    def legend():
        return of(browser, "#chart-error-by-round .legend button")[1]

    assert len(lines(browser, "error-by-round")) == 2
    legend().click()
    assert len(lines(browser, "error-by-round")) == 1
    assert legend().get_attribute("aria-pressed") == "false"
    legend().click()
    assert len(lines(browser, "error-by-round")) == 2


def test_the_log_button_changes_the_scale(opened, quickstart):
    browser = opened(quickstart)
    look_at(browser, "error-by-round")
    scale = "return document.querySelector('#chart-error-by-round .plot').layout.yaxis.type"
    button = of(browser, "#chart-error-by-round .chart-tools button")[0]
    assert browser.execute_script(scale) == "log"
    browser.execute_script("arguments[0].click()", button)
    assert browser.execute_script(scale) == "linear"
    assert button.get_attribute("aria-pressed") == "false"


def test_series_with_the_same_points_are_named_and_lines_on_lines_are_dashed(opened, sweep):
    browser = opened(sweep)
    look_at(browser, "sweep-spent")
    look_at(browser, "sweep-mean_error_bound")
    legend = of(browser, "#chart-sweep-spent .legend button")
    assert legend[1].text.split("\n") == ["pay-as-bid", "same as all-in"]
    assert legend[0].text == "all-in"
    dashes = [
        one.value_of_css_property("stroke-dasharray") for one in lines(browser, "sweep-spent")
    ]
    assert dashes[-2] == "none" and dashes[-1] != "none"
    apart = lines(browser, "sweep-mean_error_bound")
    assert all(one.value_of_css_property("stroke-dasharray") == "none" for one in apart)


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
    from selenium.webdriver import ActionChains

    browser = opened(quickstart)
    look_at(browser, "error-by-budget")
    mark = of(browser, "#chart-error-by-budget .point")[0]
    ActionChains(browser).move_to_element(mark).perform()
    told = wait_until(lambda: of(browser, "#chart-error-by-budget .hoverlayer text"))[0].text
    assert "round" in told and "error bound" in told


def test_names_are_text_and_nothing_of_them_runs(opened, evil, study):
    """Plotly reads tags in texts; an alert would have failed every step of the test."""
    browser = opened(evil)
    see_all(browser)
    assert of(browser, "h1")[0].text == EVIL and of(browser, "img") == []
    assert len(of(browser, "script")) == 3 and of(browser, ".plot a") == []
    lanes = [tick.text for tick in of(browser, "#chart-timeline .ytick text")]
    assert f"{EVIL} 1" in lanes or lanes == []  # the rounds may be equally long: a sentence
    browser = opened(study)
    see_all(browser)
    assert EVIL in of(browser, "#chart-study-gain .legend")[0].text


@pytest.mark.parametrize(
    "name", ["<b>bold</b>", "a<br>b", '<a href="x:">y</a>', "&lt;i&gt; &amp;", "$x$"]
)
def test_tags_that_the_library_knows_stay_text_in_figures(opened, quickstart, name):
    browser = opened(quickstart)
    browser.execute_script(
        """
        const name = arguments[0], points = [[name, 2, 1, 3], ["other", 3, 2, 4]];
        const labels = {title: name, x_label: name, y_label: name, note: name};
        const series = [{name, points, labels: []}, {name: "two", points, labels: []}];
        const figure = figureOf({id: "own", kind: "bars", ...labels, series}, ["#0072B2"]);
        document.querySelector(".figures").prepend(figure);
        """,
        name,
    )
    look_at(browser, "own")
    texts = browser.execute_script(
        "return [...document.querySelectorAll('#chart-own .plot text')].map((t) => t.textContent)"
    )
    assert name in texts and f"{name}, by {name}" in texts
    assert of(browser, "#chart-own .plot a, #chart-own tspan") == []


def test_an_update_draws_the_new_points(opened, quickstart):
    """The workbench gives figures new data while a run goes on."""
    browser = opened(quickstart)
    look_at(browser, "accuracy")
    browser.execute_script(
        """
        const figure = document.querySelector("#chart-accuracy");
        const chart = figuresByElement.get(figure).chart, series = chart.series[0];
        const points = [...series.points, [6, 0.5], [7, 0.6]];
        updateFigure(figure, {...chart, series: [{...series, points, labels: []}]});
        """
    )
    wait_until(lambda: len(of(browser, "#chart-accuracy .point")) == 7)


def test_dark_and_light_differ_and_the_button_changes_them(opened, quickstart):
    paper = "return getComputedStyle(document.body).backgroundColor"
    ticks = "return getComputedStyle(document.querySelector('.xtick text')).fill"
    light = opened(quickstart)
    see_all(light)
    before = light.execute_script(paper), light.execute_script(ticks)
    browser = opened(quickstart, dark=True)
    see_all(browser)
    assert browser.execute_script(paper) != before[0]
    assert browser.execute_script(ticks) != before[1]
    browser.execute_script("scrollTo({top: 0, behavior: 'instant'})")
    of(browser, "#theme")[0].click()
    wait_until(lambda: browser.execute_script(ticks) == before[1])
    assert browser.execute_script(paper) == before[0]


def saved(downloads, name):
    wait_until(lambda: (downloads / name).exists() and (downloads / name).stat().st_size)
    return downloads / name


def test_buttons_save_figures_and_tables(opened, quickstart, downloads):
    browser = opened(quickstart)
    see_all(browser)
    click = "document.querySelector(arguments[0]).click()"
    browser.execute_script(click, "#chart-money .save-svg")
    drawn = ElementTree.fromstring(saved(downloads, "money-by-round.svg").read_text())
    words = "".join(drawn.itertext())
    assert drawn.tag.endswith("svg") and "Money by round" in words and "budget" in words
    browser.execute_script(click, "#chart-money .save-png")
    picture = saved(downloads, "money-by-round.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and int.from_bytes(picture[16:20]) == 3 * 760
    browser.execute_script(click, "#table-means .save-csv")
    rows = list(csv.reader(saved(downloads, "a-round-on-average.csv").open(newline="")))
    assert rows[0] == ["of a round", "buyer", "buyer low", "buyer high"]
    assert rows[1][0] == "error bound" and float(rows[1][2]) <= float(rows[1][1])


def test_the_picture_has_its_colours(opened, quickstart, downloads):
    from PIL import Image

    browser = opened(quickstart, dark=True)  # a saved figure is light all the same
    see_all(browser)
    browser.execute_script("document.querySelector('#chart-accuracy .save-png').click()")
    picture = Image.open(saved(downloads, "accuracy.png")).convert("RGB")
    counts = {colour: count for count, colour in picture.getcolors(1 << 20)}
    assert max(counts, key=counts.get) == (255, 255, 255)
    assert counts.get((0, 114, 178), 0) > 500


def test_a_formula_in_a_table_is_text_in_the_csv(opened, quickstart):
    told = opened(quickstart).execute_script(
        """return csvOf({columns: ["a", "b"], rows: [["=1+1", "x,\\"y\\""], [-2, null]]})"""
    )
    assert told == 'a,b\r\n\'=1+1,"x,""y"""\r\n-2,\r\n'


def test_a_wide_table_scrolls_and_its_first_column_stays(opened, liars):
    browser = opened(liars, width=390)
    before, after, moved = browser.execute_script(
        """
        const box = document.querySelector("#table-best-lies .scroll");
        const row = box.querySelectorAll("tbody tr")[1];
        const left = (k) => row.children[k].getBoundingClientRect().left;
        const first = left(0), second = left(1);
        box.scrollLeft = 120;
        return [first, left(0), second - left(1)];
        """
    )
    assert before == after and moved == 120


def test_a_printed_page_is_light_and_whole(opened, quickstart):
    browser = opened(quickstart, dark=True)
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert len(of(browser, ".figure .main-svg")) >= len(of(browser, ".figure"))
    fill = "return getComputedStyle(document.querySelector('.xtick text')).fill"
    assert browser.execute_script(fill) == "rgb(61, 68, 77)"
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert browser.execute_script(fill) != "rgb(61, 68, 77)"


def test_on_a_phone_nothing_sticks_out_and_every_figure_shows(
    opened, liars, probe_file, study, sweep
):
    for inputs in ((liars,), (probe_file,), (study,), (sweep,), (liars, sweep)):
        browser = opened(*inputs, width=390)
        see_all(browser)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        assert all(plot.size["height"] > 50 for plot in of(browser, ".plot"))
