"""A twin that knows a run by its files alone: run.json, Parquet, kept models, and the data set.

The twin of the log deals the records out again, draws the noise again, and learns from the start.
This one takes the records from owners.parquet, and models and delivered gradients from models/. So
it also knows a run whose noise nobody can draw again.
"""

import flmarket_sim as fm
from flmarket_sim.eventlog import KINDS
from tests.eventlog.column_comparison import both_columns, differences
from tests.eventlog.log_twin import LogTwin
from tests.eventlog.market_twin import remembered


class FileTwin(LogTwin):
    """What the log should be, by the other files of its run."""

    def __init__(self, path):
        self.run = fm.Run(path)
        super().__init__(self.run.scenario, path)

    def records(self, number):
        return self.owners[number]["records"]

    @remembered
    def kept(self, rounds, buyer):
        return self.run.model(rounds, buyer)

    def parameters(self, key):
        return self.kept(key.round, key.buyer).parameters

    def evaluated(self, key):
        return self.kept(key.round, key.buyer).evaluated

    def delivered(self, key):
        return self.kept(key.round + 1, key.buyer).gradient


def contradictions(path):
    """Everything in the tables of a run that does not follow from its files: (table, column)."""
    twin, found = FileTwin(path), set()
    for kind in KINDS:
        found |= {(kind, name) for name in differences(kind, *both_columns(twin, kind))}
    for row, wanted in zip(twin.ledger, twin.expected_ledger(), strict=True):
        found |= {("ledger", name) for name in row if abs(row[name] - wanted[name]) > 1e-9}
    return found
