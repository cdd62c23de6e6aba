"""The five families of valuations of the paper (section VI; docs/theory.md, section 6)."""

from __future__ import annotations

import numpy as np

from flmarket_sim.owners.valuation_family import Floats


class Linear:
    """2 a d e: every bit of privacy costs the same."""

    name = "linear"

    def value(self, privacy_loss: Floats) -> Floats:
        return 2.0 * privacy_loss

    def loss_for_money(self, money: Floats) -> Floats:
        return 0.5 * money

    def marginal_value(self, privacy_loss: Floats) -> Floats:
        return np.full_like(privacy_loss, 2.0)


class Quadratic:
    """a d e^2: the first bits of privacy are cheap."""

    name = "quadratic"

    def value(self, privacy_loss: Floats) -> Floats:
        return privacy_loss * privacy_loss

    def loss_for_money(self, money: Floats) -> Floats:
        return np.asarray(np.sqrt(money))

    def marginal_value(self, privacy_loss: Floats) -> Floats:
        return 2.0 * privacy_loss


class SquareRoot:
    """2 a d sqrt(e): the first bits of privacy are dear."""

    name = "sqrt"

    def value(self, privacy_loss: Floats) -> Floats:
        return np.asarray(2.0 * np.sqrt(privacy_loss))

    def loss_for_money(self, money: Floats) -> Floats:
        half = 0.5 * money
        return half * half

    def marginal_value(self, privacy_loss: Floats) -> Floats:
        return np.asarray(1.0 / np.sqrt(np.maximum(privacy_loss, 1e-300)))


class Exponential:
    """a d (exp(e) - 1): privacy becomes dearer the less of it is left."""

    name = "exponential"

    def value(self, privacy_loss: Floats) -> Floats:
        return np.asarray(np.expm1(privacy_loss))

    def loss_for_money(self, money: Floats) -> Floats:
        return np.asarray(np.log1p(money))

    def marginal_value(self, privacy_loss: Floats) -> Floats:
        return np.asarray(np.exp(privacy_loss))


class Step:
    """a D EB as soon as e > 0: the single-minded owner, to whom all sales cost the same.

    D and EB are her true records and privacy budget; `value` is in units of this cost.
    """

    name = "step"

    def value(self, privacy_loss: Floats) -> Floats:
        return (privacy_loss > 0).astype(float)

    def loss_for_money(self, money: Floats) -> Floats:
        return np.where(money >= 1.0, np.inf, 0.0)

    def marginal_value(self, privacy_loss: Floats) -> Floats:
        return np.zeros_like(privacy_loss)
