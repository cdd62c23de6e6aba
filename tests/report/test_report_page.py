"""A report page says what the log says, and whatever is in a name stays a name."""

import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.eventlog import read_ledger
from flmarket_sim.report.html import page, plotly_library, sources
from flmarket_sim.report.html.parts import POINTS, evenly
from tests.support.paths import ROOT
from tests.support.patience import PATIENCE
from tests.support.sealed_json import without_hashes, write_sealed

from .conftest import EVIL, run_of, sweep_in
from .page_data import chart, data_of, table


def flmarket(*arguments, cwd=ROOT):
    program = os.path.join(os.path.dirname(sys.executable), "flmarket")
    return subprocess.run(
        [program, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=PATIENCE
    )


def test_a_run_shows_every_figure_with_the_numbers_of_the_log(quickstart):
    data = data_of(page.make([quickstart]))
    ids = [one["id"] for one in data["charts"]]
    assert ids == ["error-by-budget", "error-by-round", "accuracy", "money", "payments", "privacy"]
    rounds = fm.read_events(quickstart, "round").to_pylist()
    drawn = chart(data, "error-by-budget")["series"][0]["points"]
    assert np.allclose(drawn, [[row["budget"], row["error_bound"]] for row in rounds], rtol=1e-5)
    sold = read_ledger(quickstart).column("privacy_sold").to_numpy()
    shown = [point[1] for point in chart(data, "privacy")["series"][0]["points"]]
    assert shown == sorted(shown, reverse=True) and np.isclose(sum(shown), sold.sum(), rtol=1e-4)
    paid = sum(point[1] for one in chart(data, "payments")["series"] for point in one["points"])
    assert np.isclose(paid, sum(row["spent"] for row in rounds), rtol=1e-4)
    assert any(text.startswith("Every round takes 0.4 simulated") for text in data["sentences"])


def test_rounds_of_different_lengths_are_drawn_in_time(results):
    run = run_of(
        results / "slow", "quickstart.toml", "rounds=3", "market.delay.name=uniform",
        "market.delay.low=0.1", "market.delay.high=0.2",
    )  # fmt: skip
    phases = chart(data_of(page.make([run])), "timeline")["series"]
    assert [one["name"] for one in phases] == ["bidding", "deciding", "computing", "settling"]
    assert all(len(one["points"]) == 3 for one in phases)


def test_accuracy_is_drawn_beside_what_it_is_to_be_compared_with(quickstart):
    data = data_of(page.make([quickstart]))
    drawn = {line["name"]: line for line in chart(data, "accuracy")["series"]}
    assert list(drawn) == ["accuracy", "balanced accuracy", "constant guess", "without noise"]
    rounds = fm.read_events(quickstart, "round").to_pylist()
    shown = [point[1] for point in drawn["balanced accuracy"]["points"]]
    assert shown == pytest.approx([row["balanced_accuracy"] for row in rounds], rel=1e-5)
    beside = fm.read_run(quickstart)["yardsticks"]["buyer"]
    for name, key in (
        ("constant guess", "constant_guess"),
        ("without noise", "noiseless_accuracy"),
    ):
        assert drawn[name]["reference"] is True
        level = pytest.approx(beside[key], rel=1e-5)
        assert drawn[name]["points"] == [[1, level], [5, level]]
    cards = dict(map(tuple, data["inputs"][0]["cards"]))
    assert cards["without noise"] == f"{beside['noiseless_accuracy']:.1%}"
    assert cards["constant guess"] == f"{beside['constant_guess']:.1%}"
    warning = fm.read_run(quickstart)["warnings"][0]
    assert data["notices"] == [f"Warning: {warning}"]


def test_a_run_says_where_it_comes_from(quickstart):
    info = fm.read_run(quickstart)
    told = dict(map(tuple, data_of(page.make([quickstart]))["provenance"]["rows"]))
    assert (
        told["scenario sha256"] == info["scenario_sha256"]
        and told["log sha256"] == info["log"]["sha256"]
    )
    assert told["seed"] == "1" and told["numpy version"] == info["versions"]["numpy"]


def test_the_same_run_gives_the_same_page(quickstart):
    assert page.make([quickstart]) == page.make([quickstart])


def test_lies_of_a_run_stand_beside_the_truth(liars):
    data = data_of(page.make([liars]))
    best = table(data, "best-lies")
    gains = [row[best["columns"].index("gain")] for row in best["rows"]]
    assert gains == sorted(gains, reverse=True) and gains[0] > 0
    by_behaviour = table(data, "lies")["rows"]
    assert all(row[2]["low"] <= row[2]["mean"] <= row[2]["high"] for row in by_behaviour)


def test_a_probe_shows_the_best_lies(probe_file):
    data = data_of(page.make([probe_file]))
    assert {one["id"] for one in data["charts"]} == {"gain-by-budget", "best-lies", "false-parts"}
    gains = [row[7] for row in table(data, "best-lies")["rows"]]
    assert gains and gains == sorted(gains, reverse=True)
    assert any("lower bound" in sentence for sentence in data["sentences"])


def test_a_study_shows_its_rows_its_words_and_its_own_figure(study):
    data = data_of(page.make([study]))
    assert data["sentences"] == ["Names pay."] and data["pictures"] == []
    drawn = chart(data, "study-gain")
    assert drawn["kind"] == "line" and drawn["x_label"] == "names" and len(drawn["series"]) == 2
    assert table(data, "study")["rows"][0][2] == {"mean": 0.2, "low": 0.05, "high": 0.4}


def test_a_figure_of_one_value_is_a_sentence(sweep):
    data = data_of(page.make([sweep]))
    assert "Privacy sold is 3 throughout; it has no figure for that reason." in data["sentences"]
    assert all(one["id"] != "sweep-privacy_sold" for one in data["charts"])
    assert chart(data, "sweep-spent")  # equal in both auctions, but not at every budget


def test_a_sweep_shows_totals_against_its_axes_with_intervals_over_seeds(sweep):
    data = data_of(page.make([sweep]))
    drawn = chart(data, "sweep-mean_error_bound")
    assert drawn["x_label"] == "budget.factor" and [one["name"] for one in drawn["series"]] == [
        "all-in",
        "pay-as-bid",
    ]
    assert all(
        len(point) == 4 and point[2] < point[1] < point[3]
        for one in drawn["series"]
        for point in one["points"]
    )
    difference = table(data, "paired")
    error = difference["rows"][0][difference["columns"].index("mean error bound")]
    assert error == pytest.approx({"mean": -0.5, "low": -0.5, "high": -0.5})  # luck is paired away
    assert table(data, "failures")["rows"][0][-1] == EVIL and "1 of 25" in data["notices"][0]


def test_runs_in_one_world_are_compared_in_pairs(quickstart, paid_as_bid):
    data = data_of(page.make([quickstart, paid_as_bid]))
    assert [one["name"] for one in chart(data, "error-by-budget")["series"]] == [
        "auction all-in-critical",
        "auction pay-as-bid",
    ]
    spent = [
        [row["spent"] for row in fm.read_events(run, "round").to_pylist()]
        for run in (quickstart, paid_as_bid)
    ]
    row = next(row for row in table(data, "paired-run")["rows"] if row[0] == "money spent")
    assert np.isclose(row[1]["mean"], np.mean(spent[1]) - np.mean(spent[0]), rtol=1e-4)
    assert data["settings"]["rows"][0] == ["auction.name", "yes", "all-in-critical", "pay-as-bid"]


def test_runs_in_different_worlds_have_no_paired_difference(quickstart, liars):
    assert all(
        one["id"] != "paired-run" for one in data_of(page.make([quickstart, liars]))["tables"]
    )


@pytest.mark.parametrize(
    "change",
    [
        {"budget": {"amount": [900.0, 900.0], "factor": None}},
        {"name": "another"},
        {"delay": {"name": "constant", "seconds": 9.0}},
    ],
)
def test_other_budgets_buyers_or_delays_are_another_world(
    quickstart, paid_as_bid, tmp_path, change
):
    """Runs are one world if buyers, budgets and all other sources of luck are the same."""
    infos = []
    for name, source in (("one", quickstart), ("two", paid_as_bid)):
        shutil.copytree(source, tmp_path / name)
        info = fm.read_run(source)
        buyer = {
            "name": "buyer",
            "budget": {"amount": [100.0, 100.0], "factor": None},
            "auction": None,
            "aggregation": None,
            "model": None,
        }
        info["scenario"]["buyers"] = [buyer]
        infos.append(info)
    for changed in (False, True):
        if changed:
            place = (
                infos[1]["scenario"]["market"]
                if "delay" in change
                else infos[1]["scenario"]["buyers"][0]
            )
            place |= change
        for name, info in zip(("one", "two"), infos, strict=True):
            write_sealed(tmp_path / name / "run.json", info)
        tables = data_of(page.make([tmp_path / "one", tmp_path / "two"]))["tables"]
        assert any(one["id"] == "paired-run" for one in tables) is not changed


def test_accuracies_of_one_run_have_no_interval(quickstart, paid_as_bid):
    """They are one curve: rounds that follow each other are no replications."""
    data = data_of(page.make([quickstart, paid_as_bid]))
    row = next(row for row in table(data, "side-run")["rows"] if row[0] == "last accuracy")
    measured = [
        r["accuracy"]
        for r in fm.read_events(quickstart, "round").to_pylist()
        if r["accuracy"] is not None
    ]
    assert row[1]["mean"] == pytest.approx(measured[-1], rel=1e-3) and row[1]["low"] is None
    assert all("accuracy" not in row[0] for row in table(data, "paired-run")["rows"])


def test_sweeps_over_other_axes_are_not_compared(sweep, tmp_path):
    other = sweep_in(tmp_path / "other")
    file = other / "summary.parquet"
    found = pq.ParquetFile(file).read()
    pq.write_table(
        found.rename_columns(
            [name.replace("budget.factor", "owners.availability") for name in found.column_names]
        ),
        file,
    )
    data = data_of(page.make([sweep, other]))
    assert all(one["id"] != "paired-sweep" for one in data["tables"])
    drawn = [
        one
        for one in data["charts"]
        if one["title"] == chart(data, "sweep-mean_error_bound")["title"]
    ]
    assert [one["x_label"] for one in drawn] == ["budget.factor", "owners.availability"]


def test_sweeps_are_compared_seed_by_seed(sweep, tmp_path):
    data = data_of(page.make([sweep, sweep_in(tmp_path / "other", shift=0.25)]))
    row = next(row for row in table(data, "paired-sweep")["rows"] if row[0] == "mean error bound")
    assert row[1] == pytest.approx({"mean": 0.25, "low": 0.25, "high": 0.25})


def test_an_axis_of_ranges_is_an_axis_of_names(sweep, tmp_path):
    shutil.copytree(sweep, tmp_path / "ranges")
    file = tmp_path / "ranges" / "summary.parquet"
    rows = [
        row | {"budget.factor": json.dumps([0.1, row["budget.factor"]])}
        for row in pq.ParquetFile(file).read().to_pylist()
    ]
    pq.write_table(pa.Table.from_pylist(rows), file)
    drawn = chart(data_of(page.make([tmp_path / "ranges"])), "sweep-mean_error_bound")
    assert drawn["kind"] == "bars" and [one["name"] for one in drawn["series"]] == [
        "[0.1, 0.3]",
        "[0.1, 0.6]",
        "[0.1, 0.9]",
    ]


def test_names_are_never_markup(evil, sweep, study):
    for inputs in ([evil], [sweep], [study], [evil, sweep, study]):
        html = page.make(inputs)
        assert EVIL not in html and "<img" not in html and "<!--" not in html
        assert html.count("<script") == 3 and html.count("</script>") == 3
    data = data_of(page.make([evil]))
    assert data["title"] == EVIL and EVIL in table(data, "means")["columns"]


def test_hostile_names_stay_names_in_every_place(
    evil, liars, sweep, probe_file, study, results, tmp_path
):
    """Names of files, plug-ins, behaviours, buyers and axes; sentences; messages of failed runs."""
    attack = "<img src=x onerror=alert(3)>"
    named = tmp_path / attack
    named.mkdir()
    for name, source in (("run", liars), ("sweep", sweep), ("study", study)):
        shutil.copytree(source, named / f"{name}{attack}")
    lies, swept, asked = (named / f"{name}{attack}" for name in ("run", "sweep", "study"))
    info = fm.read_run(lies)
    info |= {"outcome": "failed", "error": attack}
    for key in ("files", "frames"):
        info.pop(key, None)
    info["scenario"]["auction"] = {"name": attack, attack: attack}
    info["scenario"]["owners"]["behaviours"] = [{"name": attack, "share": attack}]
    write_sealed(lies / "run.json", info)
    for part in (lies / "events").glob("kind=*/part-*.parquet"):
        rows = pq.ParquetFile(part).read()
        for column in {"buyer", "behaviour"} & set(rows.column_names):
            names = pa.array([attack] * len(rows)).dictionary_encode()
            rows = rows.set_column(rows.column_names.index(column), column, names)
        pq.write_table(rows, part)
    summary = pq.ParquetFile(swept / "summary.parquet").read()
    rows = [
        row | {"buyer": attack, "message": attack, "auction.name": attack, f"x.{attack}": attack}
        for row in summary.to_pylist()
    ]
    pq.write_table(pa.Table.from_pylist(rows), swept / "summary.parquet")
    facts = json.loads((asked / "study.json").read_text()) | {
        "sentences": [attack],
        "seconds": attack,
    }
    write_sealed(asked / "study.json", facts)
    probe = named / f"{attack}.parquet"
    found = pq.ParquetFile(probe_file).read()
    told = json.dumps(
        {"auction": attack, "scenario": attack, "effort": attack, attack: attack, "seed": 0}
    )
    pq.write_table(found.replace_schema_metadata({"flmarket_probe": "1", "facts": told}), probe)
    for inputs in ([lies], [swept], [asked], [probe], [lies, swept, asked, probe]):
        html = page.make(inputs)
        assert "<img" not in html and html.count("<script") == 3 and html.count("</script>") == 3
        assert attack in json.dumps(data_of(html))


def test_the_page_loads_nothing(quickstart):
    html = page.make([quickstart])
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)[1]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    assert "connect-src" not in policy and "http" not in policy  # the default holds: none
    own = html.replace(plotly_library.script(), "")
    assert "http://" not in own.replace("http://www.w3.org/2000/svg", "") and "https://" not in own
    assert "innerHTML" not in own and "document.write" not in own and len(own) < 500_000


def test_the_library_fits_into_a_script_element():
    library = plotly_library.script().lower()
    assert "</script" not in library and "<!--" not in library and "\r\n" not in library


def test_many_points_are_thinned_evenly_and_that_is_said():
    kept = evenly(range(100_000), POINTS)
    assert (
        len(kept) == POINTS
        and kept[0] == 0
        and kept[-1] == 99_999
        and 49 <= min(np.diff(kept)) <= max(np.diff(kept)) <= 51
    )


def test_an_interrupted_run_is_shown_up_to_where_it_is(quickstart, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(quickstart, broken)
    (broken / "ledger.parquet").unlink()
    without_hashes(broken)  # only a finished run has those of its files in run.json
    info = fm.read_run(broken) | {"outcome": "interrupted", "error": "KeyboardInterrupt: "}
    write_sealed(broken / "run.json", info)
    data, whole = data_of(page.make([broken])), data_of(page.make([quickstart]))
    assert data["notices"][0] == "This run was interrupted; 5 complete rounds are shown."
    sold = [[p[1] for p in chart(one, "privacy")["series"][0]["points"]] for one in (data, whole)]
    assert np.allclose(*sold)  # without a ledger the gradients say the same


def test_a_run_that_was_killed_before_its_first_round_says_so(quickstart, tmp_path):
    shutil.copy(quickstart / "run.json", tmp_path)
    without_hashes(tmp_path)
    write_sealed(tmp_path / "run.json", fm.read_run(tmp_path) | {"outcome": "running"})
    data = data_of(page.make([tmp_path]))
    assert "not one round" in data["notices"][0] and data["charts"] == []


def test_what_is_not_a_result_gets_a_clear_sentence(tmp_path, sweep):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text("x")
    (tmp_path / "wrong.parquet").write_text("x")
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "sweep.json").write_text("{}")
    for name, words in (
        ("empty", "not something to report on"),
        ("text.txt", "not something to report on"),
        ("wrong.parquet", "not the file of a probe"),
        ("begun", "has not finished"),
        ("nowhere", "there is no"),
    ):
        with pytest.raises(InputError, match=words):
            sources.read(tmp_path / name)


def test_the_command_writes_into_the_directory_and_nothing_over(quickstart, paid_as_bid, tmp_path):
    run = tmp_path / "my run"
    shutil.copytree(quickstart, run)
    first = flmarket("report", run, "--json")
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["report"] == str(run / "report.html")
    again = flmarket("report", run)
    assert again.returncode == 2 and "--force" in again.stderr and "Traceback" not in again.stderr
    assert flmarket("report", run, "--force").returncode == 0
    assert (
        flmarket("report", run, paid_as_bid, cwd=tmp_path).returncode == 0
        and (tmp_path / "report.html").exists()
    )
    wrong = flmarket("report", tmp_path / "nowhere")
    assert wrong.returncode == 2 and "there is no" in wrong.stderr
