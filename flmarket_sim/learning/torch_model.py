"""Any torch.nn.Module as a buyer's model: gradients of many owners at once by torch.func."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.func import functional_call, grad, vmap

from flmarket_sim.errors import InputError
from flmarket_sim.learning.buyer_model import Evaluation, Floats, Ints, evaluation
from flmarket_sim.learning.dataset import Dataset, Features
from flmarket_sim.threads import one_torch_thread

ELEMENTS = 2**23  # most inputs, parameters or activations in one vectorised call


class TorchModel:
    """A module, built as Class(features, classes, **options).

    It maps (batch, features) to logits (batch, classes). Owners of similar size are padded to a
    common length and differentiated in one vmap; the padding has weight 0.
    """

    def __init__(
        self, cls: Any, features: int, classes: int, options: dict[str, Any], seed: int
    ) -> None:
        if not (isinstance(cls, type) and issubclass(cls, torch.nn.Module)):
            raise InputError(f"model {cls!r} is not a torch.nn.Module class")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            try:
                self.module = cls(features, classes, **options).double()
            except Exception as error:  # foreign code may fail in any way
                raise InputError(
                    f"model {cls.__name__} cannot be built as "
                    f"{cls.__name__}(features, classes, **options): {error}"
                ) from error
        if any(True for _ in self.module.buffers()):
            raise InputError(
                f"model {cls.__name__} has buffers (batch statistics?), "
                "which owners cannot share in FedSGD"
            )
        self.classes = classes
        self.named = {name: p.detach() for name, p in self.module.named_parameters()}
        self.dimension = sum(p.numel() for p in self.named.values())
        # about as many activations as a record has inside the model
        self.width = max(features, self.dimension // features)
        self._gradient = vmap(grad(self._loss), in_dims=(None, 0, 0, 0), randomness="error")
        self._gradient_of_each = vmap(grad(self._loss), in_dims=(0, 0, 0, 0), randomness="error")
        self._try_out(features)

    def _try_out(self, features: int) -> None:
        """Refuses a model that cannot work, by one forward pass and one gradient on zeros."""
        name, zeros = type(self.module).__name__, torch.zeros(2, 3, features, dtype=torch.float64)
        if not self.dimension:
            raise InputError(f"model {name} has no parameters to learn")
        try:
            shape = tuple(self.module(zeros[0]).shape)
            if shape == (3, self.classes):
                self._gradient(
                    self.named,
                    zeros,
                    torch.zeros(2, 3, dtype=torch.long),
                    torch.ones(2, 3, dtype=torch.float64),
                )
                return
        except Exception as error:  # foreign code may fail in any way
            raise InputError(
                f"model {name} does not work on (records, features): {str(error).splitlines()[0]}"
            ) from error
        raise InputError(
            f"model {name} must map (records, {features}) to (records, {self.classes}) logits, "
            f"but gives {shape}"
        )

    def initial(self) -> Floats:
        return torch.cat([p.reshape(-1) for p in self.named.values()]).numpy().copy()

    def gradients(self, parameters: Floats, data: Dataset, rows: Ints, sizes: Ints) -> Floats:
        with one_torch_thread():
            return self._gradients(parameters, data, rows, sizes)

    def gradients_of_each(self, models: Floats, x: Features, y: Ints, weight: Floats) -> Floats:
        with one_torch_thread():
            gradient = self._gradient_of_each(
                self._named(models),
                torch.from_numpy(x.astype(np.float64)),
                torch.from_numpy(y),
                torch.from_numpy(weight),
            )
            return self._flat(gradient, len(models))

    def evaluate(self, parameters: Floats, data: Dataset) -> Evaluation:
        with one_torch_thread():
            return self._evaluate(parameters, data)

    def _gradients(self, parameters: Floats, data: Dataset, rows: Ints, sizes: Ints) -> Floats:
        named = self._named(parameters)
        starts = np.cumsum(sizes) - sizes
        result = np.empty((len(sizes), self.dimension))
        bucket = np.ceil(np.log2(np.maximum(sizes, 1))).astype(int)
        for level in np.unique(bucket):
            members = np.flatnonzero(bucket == level)
            length = int(sizes[members].max())
            per_owner = max(length * self.width, self.dimension)
            step = max(1, ELEMENTS // per_owner)
            for begin in range(0, len(members), step):
                group = members[begin : begin + step]
                column = np.arange(length)
                inside = column < sizes[group][:, None]
                places = rows[
                    np.where(inside, starts[group][:, None] + column, starts[group][:, None])
                ]
                weight = torch.from_numpy(inside / sizes[group][:, None])
                x = torch.from_numpy(data.train_x[places].astype(np.float64))
                y = torch.from_numpy(data.train_y[places])
                gradient = self._gradient(named, x, y, weight)
                result[group] = self._flat(gradient, len(group))
        return result

    def _evaluate(self, parameters: Floats, data: Dataset) -> Evaluation:
        named = self._named(parameters)
        step = max(1, ELEMENTS // self.width)
        predicted, loss = [], 0.0
        with torch.no_grad():
            for begin in range(0, len(data.test_y), step):
                x = torch.from_numpy(data.test_x[begin : begin + step]).double()
                y = torch.from_numpy(data.test_y[begin : begin + step])
                logits = functional_call(self.module, named, (x,))
                loss += float(torch.nn.functional.cross_entropy(logits, y, reduction="sum"))
                predicted.append(logits.argmax(dim=1).numpy())
        return evaluation(
            loss / len(data.test_y), np.concatenate(predicted), data.test_y, self.classes
        )

    def _loss(
        self, named: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor
    ) -> torch.Tensor:
        logits = functional_call(self.module, named, (x,))
        return (torch.nn.functional.cross_entropy(logits, y, reduction="none") * weight).sum()

    def _flat(self, gradient: dict[str, torch.Tensor], count: int) -> Floats:
        """(count, D) gradients of so many owners, in the order of the parameters."""
        parts = [gradient[name].reshape(count, -1) for name in self.named]
        flat: Floats = torch.cat(parts, dim=1).numpy()
        return flat

    def _named(self, parameters: Floats) -> dict[str, torch.Tensor]:
        """Parameters (D,) of one model, or (n, D) of several, in the shapes of the module."""
        flat = torch.from_numpy(np.ascontiguousarray(parameters))
        parts = torch.split(flat, [p.numel() for p in self.named.values()], dim=-1)
        return {
            name: part.reshape(*flat.shape[:-1], *p.shape)
            for (name, p), part in zip(self.named.items(), parts, strict=True)
        }
