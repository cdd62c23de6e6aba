"""Every call returns an object with a repr, HTML, rows for other libraries, a figure and files."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import flmarket_sim as fm
from flmarket_sim.auctions.all_in import AllIn
from flmarket_sim.auctions.pay_as_bid import PayAsBid
from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.plugins.registry import BUILT_IN
from flmarket_sim.results.performing import shown_progress

HOSTILE = "<img src=x onerror=alert(1)>"
SMALL = {"market__bidders": 3}


class Hostile(AllIn):
    name = HOSTILE


class Sloppy:
    name = "sloppy"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def evaluation():
    auctions = ["all-in", PayAsBid(), Hostile]
    return fm.evaluate(auctions, "quickstart", budgets=[0.5, 1], profiles=30, **SMALL)


@pytest.fixture(scope="module")
def probe():
    auctions = ["pay-as-bid", Hostile]
    return fm.probe(auctions, "quickstart", profiles=6, effort="quick", budgets=[0.5, 1], **SMALL)


@pytest.fixture(scope="module")
def audit():
    return fm.audit([Hostile, "pay-as-bid"], markets=10, only=["truthful", "budget_feasible"])


@pytest.fixture(scope="module")
def sweep(folder):
    grid = {"auction.name": ["all-in", "pay-as-bid"], "budget.factor": [0.5, 1.0]}
    return fm.sweep("quickstart", folder / "sweep", grid=grid, seeds=2, rounds=2, model="none")


@pytest.fixture(scope="module")
def study(folder):
    return fm.study(
        "studies/misreport-gain", folder / "study", study__profiles=4, study__auctions=["all-in"]
    )


@pytest.fixture(scope="module")
def run(folder):
    return fm.run("quickstart", folder / "run", rounds=3)


@pytest.fixture(scope="module")
def page(run, folder):
    return fm.report(run, folder / "page.html")


@pytest.fixture(params=["evaluation", "probe", "audit", "sweep", "study", "page"])
def result(request):
    return request.getfixturevalue(request.param)


def test_a_result_shows_itself_in_lines_that_fit(result):
    shown = repr(result)
    assert 2 < len(shown.splitlines()) < 90
    assert all(len(line) <= 100 for line in shown.splitlines() if "/" not in line)
    assert result.title.split()[0] in shown


def test_names_are_never_markup(result):
    page = result._repr_html_()
    assert "<table>" in page and "<img" not in page and page.count("<script") == 0


def test_hostile_names_are_shown_as_they_are(evaluation, probe, audit):
    for each in (evaluation, probe, audit):
        assert HOSTILE in repr(each) and "&lt;img" in each._repr_html_()


def test_rows_go_to_every_library(result):
    arrow, pandas, polars = result.to_arrow(), result.to_pandas(), result.to_polars()
    assert isinstance(arrow, pa.Table) and len(result) == len(result.rows) == arrow.num_rows > 0
    assert list(pandas.columns) == polars.columns == arrow.column_names
    assert len(pandas) == len(polars) == arrow.num_rows
    assert pa.table(result).column_names == arrow.column_names


@pytest.mark.parametrize("suffix", ["csv", "md", "tex", "json", "svg", "png", "pdf"])
def test_a_result_is_saved_by_its_suffix(result, suffix, tmp_path):
    written = result.save(tmp_path / f"result.{suffix}")
    content = written.read_bytes()
    assert len(content) > 50
    if suffix == "json":
        assert json.loads(content)
    if suffix == "pdf":
        assert content.startswith(b"%PDF")
    if suffix == "tex":
        assert b"\\toprule" in content


def test_another_suffix_is_refused(result, tmp_path):
    with pytest.raises(InputError, match=r"suffix must be one of \.csv"):
        result.save(tmp_path / "result.docx")


def test_a_figure_is_returned_and_shown_in_notebooks(result, tmp_path):
    figure = result.plot(tmp_path / "f.png", y_label="my label")
    assert figure.axes[0].get_ylabel() == "my label" and figure.axes[0].has_data()
    assert figure._repr_png_()[:4] == (tmp_path / "f.png").read_bytes()[:4] == b"\x89PNG"


def test_errors_are_compared_market_by_market_with_intervals_that_hold_together(evaluation):
    rows = evaluation.differences.rows
    assert [(row["budget_factor"], row["auction"]) for row in rows] == [
        ("0.5", "pay-as-bid"), ("0.5", HOSTILE), ("1", "pay-as-bid"), ("1", HOSTILE),
    ]  # fmt: skip
    for row in rows:
        mine = evaluation.errors[row["budget_factor"], _name(evaluation, row["auction"])]
        base = evaluation.errors[row["budget_factor"], "all-in"]
        both = np.isfinite(mine) & np.isfinite(base)
        assert row["difference"] == pytest.approx((mine - base)[both].mean())
        assert row["markets"] == both.sum()
        if row["auction"] == HOSTILE:  # all-in by another name
            assert row["difference"] == row["difference_low"] == row["difference_high"] == 0
            assert row["verdict"] == "not told apart"
    assert rows[2]["difference"] < 0  # it pays no threshold, and buys more


def _name(evaluation, label):
    return next(name for name, known in evaluation.labels.items() if known == label)


def test_the_base_of_a_comparison_can_be_chosen():
    auctions = ["all-in", "pay-as-bid"]
    found = fm.evaluate(
        auctions, "quickstart", budgets=1, profiles=8, compare="pay-as-bid", **SMALL
    )
    assert [row["compared_with"] for row in found.differences.rows] == ["pay-as-bid"]
    with pytest.raises(InputError, match="not among the auctions of this call"):
        fm.evaluate(auctions, "quickstart", budgets=1, profiles=8, compare="clock", **SMALL)


def test_an_object_and_its_name_give_the_same_numbers(evaluation):
    named = fm.evaluate("pay-as-bid", "quickstart", budgets=[0.5, 1], profiles=30, **SMALL)
    mine = [row for row in evaluation.rows if row["label"] == "pay-as-bid"]
    assert [row["error_bound"] for row in mine] == [row["error_bound"] for row in named.rows]
    probed = fm.probe(AllIn(), "quickstart", profiles=4, effort="quick", **SMALL)
    other = fm.probe("all-in", "quickstart", profiles=4, effort="quick", **SMALL)
    assert [row["gain_over_cost"] for row in probed.rows] == [
        row["gain_over_cost"] for row in other.rows
    ]


def test_an_object_is_known_by_its_name_during_the_call_only(evaluation):
    others = set(fm.auctions.names()) - set(BUILT_IN["auction"])
    assert not [name for name in others if "img" in name or name.endswith("-2")]


def test_what_is_no_auction_is_refused():
    with pytest.raises(InputError, match="Sloppy is not an auction: it has no guarantees"):
        fm.audit(Sloppy)
    with pytest.raises(InputError, match="at least one auction"):
        fm.evaluate([], "quickstart")


def test_the_audit_has_a_report_for_each_auction(audit):
    assert list(audit.reports) == [HOSTILE, "pay-as-bid"] and not audit.passed  # all-in claims it
    assert audit.verdict("truthful", "any", "pay-as-bid").outcome == "fails"
    refuted = [verdict for verdict in audit.refuted if verdict.name == "truthful"]
    assert refuted and refuted[0].counterexample.replay(AllIn()) > 0
    assert {row["property"] for row in audit.rows} >= {"contract", "truthful"}


def test_a_probe_can_be_read_again(tmp_path):
    found = fm.probe("pay-as-bid", "quickstart", profiles=3, effort="quick", **SMALL)
    again, facts = fm.strategy.read_probe(found.save(tmp_path / "probe.parquet"))
    assert facts["auction"] == "pay-as-bid" and facts["scenario"] == "quickstart"
    assert np.array_equal(again.best_utility, found.probes["pay-as-bid"].best_utility)
    assert len(found.owners) == 9


def test_probes_of_several_auctions_are_not_one_file(probe, tmp_path):
    with pytest.raises(InputError, match="the probe of one auction"):
        probe.save(tmp_path / "p.parquet")
    (less,) = probe.differences.rows
    gains = [each.relative_gain.mean() for each in probe.probes.values()]
    assert less["difference"] == pytest.approx(gains[1] - gains[0])


def test_a_sweep_continues_in_its_directory(sweep, folder):
    assert len(sweep) == 8 and sweep.failed == 0 and sweep.path == folder / "sweep"
    again = fm.sweep(
        "quickstart",
        folder / "sweep",
        grid={"auction.name": ["all-in", "pay-as-bid"], "budget.factor": [0.5, 1.0]},
        seeds=2,
        rounds=2,
        model="none",
    )
    assert again.to_arrow().equals(sweep.to_arrow())
    assert pq.read_table(folder / "sweep" / "summary.parquet").num_rows == 8
    assert [row["auction.name"] for row in sweep.differences.rows] == ["pay-as-bid"]


def test_a_scenario_object_can_be_swept(tmp_path):
    scenario = fm.load_scenario("quickstart", rounds=1, model="none")
    found = fm.sweep(scenario, tmp_path / "s", grid={"budget.factor": [0.5, 1]}, seeds=[3, 5])
    assert sorted({row["seed"] for row in found.rows}) == [3, 5] and len(found) == 4
    plan = fm.load_sweep("quickstart", sweep__grid={"rounds": [1, 2]}, sweep__seeds=2)
    assert len(plan.runs) == 4
    with pytest.raises(InputError, match="as it is"):
        fm.sweep(plan, rounds=3)


def test_a_study_is_in_its_directory(study, folder):
    assert study.path == folder / "study" and (study.path / "figure.png").exists()
    assert study.rows and study.finding.sentences[0] in " ".join(study.sentences)


def test_a_run_draws_its_rounds(run, tmp_path):
    assert run.plot().axes[0].get_ylabel() == "accuracy on test records"
    assert run.plot("spent", tmp_path / "s.svg").axes[0].lines[0].get_xdata().tolist() == [1, 2, 3]
    with pytest.raises(InputError, match="rounds have no number 'speed'"):
        run.plot("speed")


def test_a_page_is_not_written_over(run, page, tmp_path):
    with pytest.raises(InputError, match="`force=True` writes over it"):
        fm.report(run, page.path)
    assert fm.report([run], page.path, force=True).path == page.path
    assert page.save(tmp_path / "copy.html").read_text() == page.path.read_text()


def test_rooms_are_still_rooms():
    import flmarket_sim.report.figures as figures
    import flmarket_sim.sweep.sweep_plan as sweep_plan

    assert fm.report.figures is figures and fm.sweep.sweep_plan is sweep_plan


def test_the_caller_may_follow_the_progress(capsys):
    seen = []
    fm.evaluate(
        "all-in", "quickstart", budgets=1, profiles=4, progress=lambda *at: seen.append(at), **SMALL
    )
    assert seen[-1] == (2, 2)
    with shown_progress("work", "steps") as report:
        report(1, 2)
    assert capsys.readouterr().err == ""  # this is no terminal


def test_errors_in_python_name_no_options_of_commands(tmp_path, run):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("mine")
    calls = [
        lambda: fm.run("quickstart", tmp_path / "taken"),
        lambda: fm.run("quickstart", run.path),
        lambda: fm.run("no-such-market"),
        lambda: fm.load_scenario("quickstart", ["rounds"]),
        lambda: fm.load_scenario("quickstart", ["rounds.x=1"]),
        lambda: fm.sweep("quickstart", tmp_path / "taken", seeds=2),
        lambda: fm.sweep("quickstart"),
        lambda: fm.study("quickstart"),
        lambda: fm.report(tmp_path / "taken"),
        lambda: fm.report(run, tmp_path),
        lambda: fm.evaluate("all-in", "quickstart", budgets="x"),
        lambda: fm.evaluate("all-in", "quickstart", budgets=[-1]),
        lambda: fm.evaluate("all-in", "quickstart", budgets=1, profiles=4, workers=0),
        lambda: fm.probe("all-in", "quickstart", effort="heroic"),
        lambda: fm.audit("all-in", only=["no-such-property"]),
    ]
    for call in calls:
        with pytest.raises(FlmarketError) as told:
            call()
        assert "--" not in str(told.value), told.value
