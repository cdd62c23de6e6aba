"""Multinomial logistic regression, gradients of many owners in one pass."""

from __future__ import annotations

import numpy as np

from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.learning.model import Evaluation, Floats, Ints, evaluation

CHUNK = 65_536  # records held as float64 at once


class Logistic:
    """Multinomial logistic regression with intercepts, started at zero. D = (features + 1) x classes."""

    name = "logistic"

    def __init__(self, features: int, classes: int) -> None:
        self.features, self.classes = features, classes
        self.dimension = (features + 1) * classes

    def initial(self) -> Floats:
        return np.zeros(self.dimension)

    def gradients(self, parameters: Floats, data: Dataset, rows: Ints, sizes: Ints) -> Floats:
        """One softmax over the records of a chunk of owners, then a product per owner of her rows of it."""
        ends = np.cumsum(sizes)
        result = np.empty((len(sizes), self.features + 1, self.classes))
        first = 0
        while first < len(sizes):
            begin = int(ends[first - 1]) if first else 0
            last = max(int(np.searchsorted(ends, begin + CHUNK, side="right")), first + 1)
            chunk = rows[begin : int(ends[last - 1])]
            x = data.train_x[chunk].astype(np.float64)
            residual = self._probabilities(parameters, x)
            residual[np.arange(len(chunk)), data.train_y[chunk]] -= 1.0
            start = 0
            for owner in range(first, last):
                stop = int(ends[owner]) - begin
                part = residual[start:stop]
                result[owner, :-1] = x[start:stop].T @ part
                result[owner, -1] = part.sum(axis=0)
                start = stop
            first = last
        result /= np.asarray(sizes, float)[:, None, None]
        return result.reshape(len(sizes), self.dimension)

    def evaluate(self, parameters: Floats, data: Dataset) -> Evaluation:
        table = parameters.reshape(self.features + 1, self.classes).astype(np.float32)
        logits = data.test_x @ table[:-1] + table[-1]
        top = logits.max(axis=1)
        chosen = logits[np.arange(len(logits)), data.test_y]
        loss = float((top + np.log(np.exp(logits - top[:, None]).sum(axis=1)) - chosen).mean(dtype=np.float64))
        return evaluation(loss, logits.argmax(axis=1), data.test_y, self.classes)

    def _probabilities(self, parameters: Floats, x: Floats) -> Floats:
        table = parameters.reshape(self.features + 1, self.classes)
        logits = x @ table[:-1] + table[-1]
        logits -= logits.max(axis=1, keepdims=True)
        np.exp(logits, out=logits)
        logits /= logits.sum(axis=1, keepdims=True)
        return logits
