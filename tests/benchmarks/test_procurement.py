"""The published table of procurement, in small."""

import numpy as np
import pytest

from benchmarks import procurement
from tests.auctions.procurement import references


@pytest.mark.parametrize("costs", procurement.PUBLISHED)
def test_every_cell_is_close_to_the_published_one(costs):
    cells = procurement.measured(costs, draws=60)
    for name, there in zip(procurement.MECHANISMS, procurement.PUBLISHED[costs], strict=True):
        assert cells[name].mean == pytest.approx(there, abs=procurement.CLOSE), name
        assert 0 < cells[name].error < 0.002
    assert cells["Greedy-II"].mean > cells["cutoff"].mean > cells["AGN"].mean
    assert cells[procurement.TRUTHFUL].mean < cells["RandomSample"].mean


def test_the_optimum_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    cost, budget = rng.exponential(1.0, (40, 9)), rng.uniform(5.0, 12.0, 40)
    cost = np.minimum(cost, 5.0)
    found = procurement.fractional_optimum(cost, budget)
    for k in range(40):
        assert found[k] == pytest.approx(
            references.fractional_optimum(cost[k], [1.0] * 9, budget[k])
        )


def test_the_command_prints_the_table_and_fails_where_a_cell_is_far_off(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["procurement", "20"])
    line = {"uniform(0, 40)": procurement.PUBLISHED["uniform(0, 40)"]}
    monkeypatch.setattr(procurement, "PUBLISHED", line)
    procurement.main()
    assert "| uniform(0, 40) | 0.7" in capsys.readouterr().out
    monkeypatch.setitem(line, "uniform(0, 40)", (0.709, 0.7, 0.711, 0.702))
    with pytest.raises(SystemExit, match=r"more than 0\.005"):
        procurement.main()
