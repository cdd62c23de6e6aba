"""A variance in a table: its values, elasticity and upper ends, against the function itself."""

import numpy as np
import pytest

from flmarket_sim.aggregation.market_error import MarketError, coordinate_error, error_of_kappa
from flmarket_sim.aggregation.noise_curve import NoiseCurve

LOSS = np.random.default_rng(0).uniform(1e-4, 2.0, 500)


def steep(loss):
    return 50.0 / np.expm1(loss) ** 2


def test_the_papers_variance_has_no_table():
    curve = NoiseCurve.of(coordinate_error(1.5), 2.0)
    assert not curve.tabulated and curve.variance(LOSS) is None and curve.slack == 0.0
    assert curve.elasticity(LOSS) == 2.0
    assert (curve.precision_above(LOSS) == LOSS**2 / 8.0).all()


def test_a_power_is_exact_and_also_below_the_table():
    curve = NoiseCurve.of(error_of_kappa(4920.0, 1.5), 2.0)
    low = np.append(LOSS, [1e-9, 1e-8])
    assert curve.variance(low) == pytest.approx(4920.0 * 2.25 / low**2, rel=1e-9)
    assert curve.elasticity(low) == pytest.approx(2.0)
    assert np.isinf(curve.variance(np.zeros(2))).all()


def test_another_variance_is_close_and_within_its_slack():
    curve = NoiseCurve.of(MarketError("vector", steep, 2.0), 2.0)
    off = np.abs(curve.variance(LOSS) / steep(LOSS) - 1.0)
    assert off.max() <= curve.slack <= 1e-4
    slope = -(np.log(steep(LOSS * 1.0001)) - np.log(steep(LOSS / 1.0001))) / np.log(1.0001**2)
    assert curve.elasticity(LOSS) == pytest.approx(slope, rel=1e-3)


@pytest.mark.parametrize("variance", [steep, lambda e: 7.0 / e**2, lambda e: 1.0 / e])
def test_a_precision_is_never_below_the_true_one(variance):
    curve = NoiseCurve.of(MarketError("vector", variance, 2.0), 2.0, 1e-3, 2**15)
    losses = np.append(LOSS, [1e-5, 1e-3, 2.0])
    above, truth = curve.precision_above(losses), 4.0 / variance(losses)
    assert (above >= truth * (1 - 1e-9)).all()
    inside = losses >= 1e-3
    assert (above[inside] <= truth[inside] * 1.002).all()
    assert curve.precision_above(np.zeros(1)) == 0.0
