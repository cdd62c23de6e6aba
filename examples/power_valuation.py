"""A valuation family of its own: privacy that becomes dearer, but less so than in `quadratic`."""

import numpy as np


class Power:
    """2 a d e^1.5: between the linear and the quadratic owner."""

    name = "power"

    def value(self, privacy_loss):
        return 2.0 * privacy_loss**1.5

    def loss_for_money(self, money):
        return np.cbrt((0.5 * money) ** 2)

    def marginal_value(self, privacy_loss):
        return 3.0 * np.sqrt(privacy_loss)

    def torch_value(self, privacy_loss):
        sells = privacy_loss > 0
        return 2.0 * privacy_loss.where(sells, privacy_loss.new_ones(())) ** 1.5 * sells


class PowerOfData(Power):
    """2 a sqrt(d) e^1.5: a second record of the same person tells less about her than the first."""

    name = "power-of-data"

    def size_factor(self, data_size):
        return np.sqrt(data_size)
