"""Paired differences: what one policy does less what another does, in the same worlds."""

import math

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.report.html import page
from flmarket_sim.sweep.sweep_plan import parse_sweep
from tests.support.command_line import flmarket

from ..report.test_report_page import data_of, table

FILE = """
name = "pairs"
rounds = 3
[data]
name = "synthetic"
records = 4000
[model]
name = "none"
[sweep]
seeds = 4
[sweep.grid]
"auction.name" = ["all-in-critical", "proportional-share", "pay-as-bid"]
"budget.factor" = [0.3, 1.0]
"""
COLUMNS = ["mean_error_bound", "spent"]


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paired")
    by_rule = {}
    for rule in ("opt-aggr", "convl-aggr"):
        plan = parse_sweep(FILE, "pairs", [f"aggregation.name={rule}"])
        fm.run_sweep(plan, folder / rule)
        by_rule[rule] = folder / rule
    return by_rule


def slowly(rows, others, column, alike):
    """Mean, interval and number of pairs by looking at every two rows."""
    by_seed = {}
    for row in rows:
        for other in others:
            if all(row[name] == other[name] for name in ["seed", *alike]):
                by_seed.setdefault(row["seed"], []).append(row[column] - other[column])
    each = [sum(found) / len(found) for found in by_seed.values()]
    half = stats.t.ppf(0.975, len(each) - 1) * stats.sem(each)
    return np.mean(each), np.mean(each) - half, np.mean(each) + half, len(each)


def numbers(row):
    return row["difference"], row["difference_low"], row["difference_high"], row["pairs"]


def test_differences_are_those_of_every_two_rows_that_share_a_world(swept):
    summary = fm.read_sweep(swept["opt-aggr"])
    found = fm.paired_differences(
        summary, axis="auction.name", baseline="pay-as-bid", columns=COLUMNS
    ).to_pylist()
    rows = summary.to_pylist()
    base = [row for row in rows if row["auction.name"] == "pay-as-bid"]
    assert [(row["auction.name"], row["column"]) for row in found] == [
        (name, column) for name in ("all-in-critical", "proportional-share") for column in COLUMNS
    ]
    for row in found:
        mine = [one for one in rows if one["auction.name"] == row["auction.name"]]
        assert numbers(row) == pytest.approx(slowly(mine, base, row["column"], ["budget.factor"]))
        assert row["pairs"] == 4 and row["baseline_mean"] == pytest.approx(
            np.mean([one[row["column"]] for one in base])
        )


def test_differences_by_another_axis_are_taken_at_each_of_its_values(swept):
    summary = fm.read_sweep(swept["opt-aggr"])
    found = fm.paired_differences(
        summary,
        axis="auction.name",
        baseline="pay-as-bid",
        columns=["mean_error_bound"],
        by=["budget.factor"],
    ).to_pylist()
    assert len(found) == 4
    for row in found:
        here = [one for one in summary.to_pylist() if one["budget.factor"] == row["budget.factor"]]
        base = [one for one in here if one["auction.name"] == "pay-as-bid"]
        mine = [one for one in here if one["auction.name"] == row["auction.name"]]
        assert numbers(row) == pytest.approx(slowly(mine, base, "mean_error_bound", []))


def test_two_sweeps_are_compared_run_by_run(swept):
    first, second = (fm.read_sweep(swept[rule]) for rule in ("opt-aggr", "convl-aggr"))
    found = fm.paired_differences(
        second, baseline=first, columns=COLUMNS, by=["auction.name"]
    ).to_pylist()
    for row in found:
        mine = [one for one in second.to_pylist() if one["auction.name"] == row["auction.name"]]
        assert numbers(row) == pytest.approx(
            slowly(mine, first.to_pylist(), row["column"], ["auction.name", "budget.factor"])
        )
    error = {row["auction.name"]: row for row in found if row["column"] == "mean_error_bound"}
    assert all(
        row["difference"] > 0 for row in error.values()
    )  # OptAggr minimises the bound; ConvlAggr does not
    spent = [row for row in found if row["column"] == "spent"]
    assert all(
        row["difference"] == 0 for row in spent
    )  # what is bought does not depend on the weights


def test_what_is_missing_is_in_no_pair(swept):
    summary = fm.read_sweep(swept["opt-aggr"])
    rows = summary.to_pylist()
    rows[0]["mean_error_bound"] = None  # an invalid market: seed 0 of all-in-critical at 0.3
    rows[1]["outcome"] = "failed"  # seed 1 there
    for row in rows[2:4]:
        row["mean_error_bound"] = math.nan
    changed = pa.Table.from_pylist(rows, summary.schema)
    options = {
        "axis": "auction.name",
        "baseline": "pay-as-bid",
        "columns": ["mean_error_bound"],
        "by": ["budget.factor"],
    }
    first = fm.paired_differences(changed, **options).to_pylist()[0]
    assert (
        first["pairs"] == 0
        and math.isnan(first["difference"])
        and math.isnan(first["baseline_mean"])
    )
    rows[3]["mean_error_bound"] = 1.0
    one = fm.paired_differences(pa.Table.from_pylist(rows, summary.schema), **options).to_pylist()[
        0
    ]
    assert (
        one["pairs"] == 1 and math.isfinite(one["difference"]) and math.isnan(one["difference_low"])
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"axis": "auction.nam", "baseline": "all-in"}, "did you mean 'auction.name'"),
        (
            {"axis": "auction.name", "baseline": "all-in"},
            "no finished run has auction.name = 'all-in'",
        ),
        (
            {"axis": "auction.name", "baseline": "pay-as-bid", "columns": ["mean_error"]},
            "did you mean 'mean_error_bound'",
        ),
        (
            {"axis": "auction.name", "baseline": "pay-as-bid", "columns": ["message"]},
            "no total 'message'",
        ),
        (
            {"axis": "auction.name", "baseline": "pay-as-bid", "by": ["auction.name"]},
            "cannot be in `by`",
        ),
        ({"baseline": "pay-as-bid"}, "summary of another sweep"),
    ],
)
def test_a_wrong_question_gets_one_clear_paragraph(swept, options, said):
    with pytest.raises(InputError, match=said):
        fm.paired_differences(fm.read_sweep(swept["opt-aggr"]), **{"columns": COLUMNS} | options)


def test_sweeps_over_other_axes_are_not_compared(swept, tmp_path):
    text = FILE.replace('"budget.factor" = [0.3, 1.0]', "").replace("seeds = 4", "seeds = 1")
    other = fm.run_sweep(parse_sweep(text), tmp_path / "other")
    with pytest.raises(InputError, match="different axes"):
        fm.paired_differences(fm.read_sweep(swept["opt-aggr"]), baseline=other, columns=COLUMNS)


def test_a_page_of_two_real_sweeps_has_their_differences(swept):
    data = data_of(page.make([swept["opt-aggr"], swept["convl-aggr"]]))
    row = next(row for row in table(data, "paired-sweep")["rows"] if row[0] == "mean error bound")
    assert row[1]["mean"] > 0 and row[1]["low"] < row[1]["mean"] < row[1]["high"]
    assert data["settings"]["rows"][0] == ["aggregation.name", "yes", "opt-aggr", "convl-aggr"]


def test_the_command_shows_differences_in_the_same_worlds(swept, tmp_path):
    (tmp_path / "pairs.toml").write_text(FILE)
    command = (
        "sweep",
        tmp_path / "pairs.toml",
        "--set",
        "aggregation.name=opt-aggr",
        "--out",
        swept["opt-aggr"],
    )
    shown = flmarket(*command, cwd=tmp_path, env={"COLUMNS": "200"}).stdout
    first = fm.paired_differences(
        fm.read_sweep(swept["opt-aggr"]),
        axis="auction.name",
        baseline="all-in-critical",
        columns=["mean_error_bound"],
    ).to_pylist()[0]
    under = shown[shown.index("auction.name less all-in-critical") :].splitlines()
    line = next(line for line in under if "proportional-share" in line)
    assert f"{first['difference']:.2f} [" in line and "same worlds" in shown
