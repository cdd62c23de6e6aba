"""The check of writing-a-check.md keeps its contract, and what undetectable.md says is true."""

import re

import numpy as np
import pytest

from benchmarks.check_levels import accused_in_markets
from docs import undetectable
from flmarket_sim.checks.honest_payment import stake_of_any_perturbation, stake_of_caps
from flmarket_sim.checks.undetectable import largest_distance
from flmarket_sim.plugins.registry import checks
from flmarket_sim.testing import check_check
from tests.support.paths import ROOT

PAGE = (ROOT / "docs/writing-a-check.md").read_text()


def rows(path):
    """The rows of numbers of every table of a page."""
    text = (ROOT / path).read_text()
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    return [line for line in lines if len(line) > 3 and re.fullmatch(r"[\d.]+", line[-1])]


def test_the_check_of_the_page_keeps_its_contract(tmp_path, monkeypatch):
    code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    (tmp_path / "page_loudest.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    check_check("page_loudest:LoudestCoordinate", ("laplace",), rounds=5)
    check_check(f"{ROOT}/examples/loudest_coordinate.py:LoudestCoordinate", rounds=5)


def test_the_page_has_every_check():
    for name in checks.names():
        assert f"| `{name}` |" in PAGE


def test_the_tables_of_bounds_are_current():
    text = undetectable.PAGE.read_text()
    assert undetectable.page(text) == text, "run 'python -m docs.undetectable'"
    assert text.count("<!-- made by") == len(undetectable.TABLES) == text.count("| 0.1 |")


def test_the_cross_of_the_two_bounds_is_where_the_page_says():
    for loss, delta in ((0.5, 0.0), (2.0, 0.01)):
        level = (1 - delta) / (np.exp(loss) + 1)
        assert np.exp(loss) * level + delta - level == pytest.approx(largest_distance(loss, delta))


def test_at_small_losses_the_stake_is_two_units_of_value_and_at_large_ones_a_small_cheat_is_best():
    assert 0.001 * stake_of_any_perturbation(0.001) == pytest.approx(2.0, rel=1e-3)
    assert stake_of_caps(8.0, 650) > 1.2 * stake_of_any_perturbation(8.0)


def test_the_measured_detector_is_within_two_points_of_the_best_test_in_every_row():
    found = rows("benchmarks/detector_power.md")
    assert {row[0] for row in found} == {"priv-unit", "laplace"} and len(found) >= 16
    assert {row[3] for row in found if row[0] == "laplace"} == {"zeros", "a random direction"}
    for row in found:
        cheats, best, most = map(float, row[6:9])
        assert abs(cheats - best) <= 2.0 and best <= most + 0.01


def test_the_page_has_what_was_measured_of_the_shipped_cheat():
    case = ["laplace", "10", "all coordinates alike", "a random direction", "8"]
    (row,) = (row for row in rows("benchmarks/detector_power.md") if row[:5] == case)
    cheats, best = (f"{float(number):.0f} %" for number in row[6:8])
    said = f"the check finds {cheats} and the best test {best}."
    assert said in undetectable.PAGE.read_text()


def test_no_check_was_measured_above_its_share():
    found = rows("benchmarks/check_levels.md")
    assert found
    for row in found:
        assert all(float(share) <= 5.0 for share in row[2:])


def test_the_page_on_cheats_says_whom_a_direction_accuses_wrongly():
    lines = (ROOT / "benchmarks/check_levels_non_iid.md").read_text().splitlines()
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    found = {(row[0], row[1]): dict(zip(table[0], row, strict=True)) for row in table[2:]}
    text = (ROOT / "docs/cheating.md").read_text()
    block = re.search(r"<!-- measured by: .*--non-iid -->(.*?)<!-- end -->", text, re.DOTALL)
    for check in ("aggregate-cosine", "peer-cosine", "likelihood-ratio"):
        said = " ".join(block[1].split()).partition(f"`{check}`")[2]
        eight, sixteen = (float(number) for number in re.findall(r"([\d.]+) %", said)[:2])
        if check == "aggregate-cosine":  # the level stands behind the first pair
            assert "at a level of 5 %" in said
        assert eight == pytest.approx(float(found["dirichlet", "8"][check]), abs=0.051)
        assert sixteen == pytest.approx(float(found["dirichlet", "16"][check]), abs=0.051)
        assert float(found["iid", "16"][check]) < 5.0 < eight


def test_the_page_on_cheats_says_what_cheats_do_to_honest_owners():
    lines = (ROOT / "benchmarks/check_levels_cheats.md").read_text().splitlines()
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    cells = {(row[0], row[1]): dict(zip(table[0], row, strict=True)) for row in table[2:]}

    def shares(who, loss, check):  # in the mean, and in the worst market
        return [float(n) for n in re.findall(r"[\d.]+", cells[who, loss][check])[:2]]

    text = (ROOT / "docs/cheating.md").read_text()
    block = re.search(r"<!-- measured by: [^>]*--cheats[^>]*-->(.*?)<!-- end -->", text, re.DOTALL)
    said = " ".join(block[1].split())
    names = table[0][2:]
    assert len(names) == 5
    fifths = ("20 %", "20 %, times 10")
    most = max(shares(who, e, name)[0] for who in fifths for e in ("8", "16") for name in names)
    assert f"no check accuses more than {most:.1f} % of" in said
    for name in names:
        pairs = re.search(rf"`{name}`(?: accuses)? ([\d.]+) % and ([\d.]+) %", said)
        worst = [shares("40 %", e, name)[1] for e in ("8", "16")]
        assert [float(number) for number in pairs.groups()] == worst, name
        assert max(shares("40 %", e, name)[0] for e in ("8", "16")) < 5.0


def test_markets_of_honest_owners_are_judged():
    guilty, judged = accused_in_markets({"name": "dirichlet", "alpha": 0.1}, "peer-cosine", 16.0, 1)
    assert judged == 240 and 0 < guilty < 0.4 * judged
