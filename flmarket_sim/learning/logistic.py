"""Multinomial logistic regression, gradients of many owners in one pass.

Products are computed in float32, the precision of the features. Gradients are float64, in which
they are clipped.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from flmarket_sim.errors import InputError
from flmarket_sim.learning.buyer_model import Evaluation, Floats, Ints, evaluation
from flmarket_sim.learning.dataset import Dataset, Features

CHUNK = 131_072  # most records in memory at once
ELEMENTS = 2**25  # most features of them


Start = Literal["zero", "random"]


class Logistic:
    """Multinomial logistic regression with intercepts.

    It starts at zero, or at random as a torch.nn.Linear does: all parameters uniform in
    +-1 / sqrt(features). D = (features + 1) x classes. `class_weights` multiply the losses of the
    training records of each class, in the order of the data set's classes: a buyer whose classes
    are of unequal size announces them so that the rare ones count.
    """

    name = "logistic"

    def __init__(
        self,
        features: int,
        classes: int,
        start: Start = "zero",
        class_weights: list[float] | None = None,
    ) -> None:
        self.features, self.classes, self.start = features, classes, start
        self._class_weights = checked_class_weights(class_weights, classes)
        self.dimension = (features + 1) * classes
        self._initial = np.zeros(self.dimension)

    def draw_start(self, generator: np.random.Generator) -> None:
        if self.start == "random":
            bound = 1.0 / np.sqrt(self.features)
            self._initial = generator.uniform(-bound, bound, self.dimension)

    def initial(self) -> Floats:
        return self._initial.copy()

    def gradients(self, parameters: Floats, data: Dataset, rows: Ints, sizes: Ints) -> Floats:
        """One softmax over the records of many owners, then one product for each owner's rows."""
        ends = np.cumsum(sizes)
        most = min(CHUNK, max(1, ELEMENTS // self.features))
        result = np.empty((len(sizes), self.features + 1, self.classes))
        first = 0
        while first < len(sizes):
            begin = int(ends[first - 1]) if first else 0
            last = max(int(np.searchsorted(ends, begin + most, side="right")), first + 1)
            chunk = rows[begin : int(ends[last - 1])]
            x = data.train_x[chunk]
            residual = self._weighted_slope(self._logits(parameters, x), data.train_y[chunk])
            start = 0
            for owner in range(first, last):
                stop = int(ends[owner]) - begin
                part = residual[:, start:stop]
                result[owner, :-1] = (part @ x[start:stop]).T
                result[owner, -1] = part.sum(axis=1)
                start = stop
            first = last
        result /= np.asarray(sizes, float)[:, None, None]
        return result.reshape(len(sizes), self.dimension)

    def gradients_of_each(self, models: Floats, x: Features, y: Ints, weight: Floats) -> Floats:
        """One product for each owner, all of them in one call."""
        tables = models.reshape(len(models), self.features + 1, self.classes).astype(np.float32)
        logits = np.matmul(x, tables[:, :-1])
        logits += tables[:, -1:]
        flat = np.ascontiguousarray(logits.reshape(-1, self.classes).T)
        slope = self._weighted_slope(flat, y.reshape(-1))
        slope *= weight.reshape(-1).astype(np.float32)
        residual = np.ascontiguousarray(slope.T).reshape(logits.shape)
        result = np.empty(tables.shape)
        result[:, :-1] = np.matmul(x.transpose(0, 2, 1), residual)
        result[:, -1] = residual.sum(axis=1)
        return result.reshape(models.shape)

    def evaluate(self, parameters: Floats, data: Dataset) -> Evaluation:
        scores = self._scores(self._logits(parameters, data.test_x))
        top = scores.max(axis=0)
        chosen = scores[data.test_y, np.arange(len(data.test_y))]
        loss = float(
            (top + np.log(np.exp(scores - top).sum(axis=0)) - chosen).mean(dtype=np.float64)
        )
        return evaluation(loss, scores.argmax(axis=0), data.test_y, self.classes)

    def _logits(self, parameters: Floats, x: Features) -> Features:
        """(classes, records): sums and maxima over classes then run along whole rows."""
        table = parameters.reshape(self.features + 1, self.classes).astype(np.float32)
        return np.ascontiguousarray((x @ table[:-1] + table[-1]).T)

    def _scores(self, logits: Features) -> Features:
        """(classes, records) what goes into the softmax: the logits themselves."""
        return logits

    def _weighted_slope(self, logits: Features, labels: Ints) -> Features:
        """The slope of each record's loss, times the weight of its class."""
        slope = self._slope(logits, labels)
        if self._class_weights is not None:
            slope *= self._class_weights[labels]
        return slope

    def _slope(self, logits: Features, labels: Ints) -> Features:
        """(classes, records) the slope of each record's loss by its logits, which are lost."""
        return softmax_residual(logits, labels)


def checked_class_weights(weights: list[float] | None, classes: int) -> Features | None:
    """(classes,) the weights; refused unless there is a positive one for each class."""
    if weights is None:
        return None
    if len(weights) != classes or not all(0 < weight < np.inf for weight in weights):
        raise InputError(
            f"class_weights must be {classes} positive numbers, one for each class (got {weights})"
        )
    return np.array(weights, np.float32)


def softmax_residual(scores: Features, labels: Ints) -> Features:
    """(classes, records) softmax less the label, written over the scores."""
    scores -= scores.max(axis=0)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=0)
    scores[labels, np.arange(len(labels))] -= 1.0
    return scores
