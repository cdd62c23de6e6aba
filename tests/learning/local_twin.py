"""Local training, slow and obvious: one owner after the other, one step after the other."""

import numpy as np

from flmarket_sim.randomness import Purpose


def batches(streams, size, spec, key):
    """The positions of an owner's records in each of her steps; `key` is (owner, round, buyer)."""
    generator = streams.generator(Purpose.BATCH, *key)
    for _ in range(spec.steps):
        if spec.batch is None or spec.batch >= size:
            yield list(range(size))
        else:
            lots = generator.random(size)
            yield sorted(range(size), key=lambda position, lots=lots: lots[position])[: spec.batch]


def local_change(model, spec, parameters, data, records, streams, key):
    """(D,) what one owner sends: the model that she was sent less the model that she ends with."""
    mine, records = parameters.copy(), np.asarray(records)
    for positions in batches(streams, len(records), spec, key):
        taken = records[positions]
        mine -= spec.learning_rate * model.gradients(mine, data, taken, np.array([len(taken)]))[0]
    return parameters - mine


def local_changes(model, spec, parameters, data, rows, sizes, streams, participants, number, buyer):
    """(n, D) the same for many owners."""
    ends = np.cumsum(sizes)
    return np.stack(
        [
            local_change(
                model, spec, parameters, data, rows[end - size : end], streams, (who, number, buyer)
            )
            for end, size, who in zip(ends, sizes, np.asarray(participants).tolist(), strict=True)
        ]
    )
