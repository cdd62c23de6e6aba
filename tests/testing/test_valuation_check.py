"""Every check of a valuation family can fail: for each there is a family that it refuses."""

import numpy as np
import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.owners.family_table import FAMILIES
from flmarket_sim.testing import NotAValuation, check_valuation


class Sound:
    """2 e^1.5 with everything that a family may have."""

    name = "sound"

    def value(self, e):
        return 2.0 * e**1.5

    def loss_for_money(self, money):
        return np.cbrt((0.5 * money) ** 2)

    def marginal_value(self, e):
        return 3.0 * np.sqrt(e)

    def size_factor(self, size):
        return np.log1p(size)

    def torch_value(self, e):
        return 2.0 * e * (e + 1e-300).sqrt()


class CostsWithoutSale(Sound):
    def value(self, e):
        return 2.0 * e**1.5 + 1.0


class Infinite(Sound):
    def value(self, e):
        return np.where(e > 4.0, np.inf, 2.0 * e**1.5)


class Falling(Sound):
    def value(self, e):
        return np.sin(e)


class BuysTooLittle(Sound):
    def loss_for_money(self, money):
        return 0.9 * super().loss_for_money(money)


class BuysTooMuch(Sound):
    def loss_for_money(self, money):
        return 1.1 * super().loss_for_money(money)


class OneNumber(Sound):
    def value(self, e):
        return np.sum(2.0 * e**1.5)


class Relative(Sound):
    def value(self, e):
        return 2.0 * e**1.5 / np.max(e)


class WrongSlope(Sound):
    def marginal_value(self, e):
        return 2.0 * np.sqrt(e)


class FallingSizes(Sound):
    def size_factor(self, size):
        return 1.0 / size


class OtherTensor(Sound):
    def torch_value(self, e):
        return 2.0 * e


class SteepTensor(Sound):
    def torch_value(self, e):
        return 2.0 * e * e.sqrt()


class Fails(Sound):
    def value(self, e):
        raise RuntimeError("no")


@pytest.mark.parametrize("family", [*FAMILIES, Sound, Sound()])
def test_a_sound_family_passes(family):
    check_valuation(family)


@pytest.mark.parametrize(
    ("family", "complaint"),
    [
        (CostsWithoutSale, "selling nothing must cost nothing"),
        (Infinite, "finite and at least 0"),
        (Falling, "more privacy must not cost less"),
        (BuysTooLittle, "this money must buy"),
        (BuysTooMuch, "worth at most the money"),
        (OneNumber, "in the shape of its argument"),
        (Relative, "elementwise"),
        (WrongSlope, "but the slope of value there"),
        (FallingSizes, "size_factor must be"),
        (OtherTensor, "torch_value is not what value gives"),
        (SteepTensor, "gradient of torch_value"),
        (Fails, "it failed: RuntimeError: no"),
    ],
)
def test_a_broken_family_is_refused_for_what_is_wrong_with_it(family, complaint):
    with pytest.raises(NotAValuation, match=complaint):
        check_valuation(family)


def test_a_class_without_the_methods_of_a_family_is_refused():
    class NoInverse:
        name = "no-inverse"

        def value(self, e):
            return e

    with pytest.raises(InputError, match="it has no loss_for_money"):
        check_valuation(NoInverse)
