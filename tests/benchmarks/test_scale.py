"""The page on scale: exponents, what did not end, and one real measurement."""

import math

import pytest

from benchmarks import scale
from benchmarks.scale_axes import AXES, market, table


def test_the_exponent_is_the_slope_at_the_upper_end():
    found = {
        size: {"seconds": 5.0 + 1e-9 * size**2, "memory": 3.0 * size}
        for size in (10, 100, 10**6, 10**7)
    }
    assert scale.exponent(found, "seconds") == pytest.approx(2.0, abs=0.01)
    assert scale.exponent(found, "memory") == pytest.approx(1.0)
    assert math.isnan(scale.exponent(found, "bytes"))
    assert math.isnan(scale.exponent({10: {"seconds": 1.0}}, "seconds"))


@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.name)
def test_a_chapter_says_what_did_not_end_and_breaks_on_no_number(axis):
    nothing = scale.chapter(axis, {side.name: {} for side in axis.sides}, quick=False)
    assert nothing.count("not ended after") == len(axis.sides)
    same = {
        size: {"seconds": 1.0, "memory": 0.0, "bytes": 5.0}
        for side in axis.sides
        for size in side.sizes
    }
    flat = scale.chapter(
        axis, {side.name: {n: same[n] for n in side.sizes} for side in axis.sides}, quick=False
    )
    assert "not ended" not in flat and "nan" not in flat and "**0.00**" in flat


def test_a_measurement_is_a_process_that_runs_a_market_and_counts_its_log():
    found = scale.measure(market(table(50, 10, 3, 1000, {"name": "none"})))
    assert found["events"] > 3 * 10 and found["bytes"] > 1000 and found["seconds"] > 0


def test_a_measurement_without_end_is_ended(monkeypatch):
    monkeypatch.setattr(scale, "LIMIT", 3)
    assert scale.measure(market(table(1000, 1000, 10**6, 20_000, {"name": "none"}))) is None
