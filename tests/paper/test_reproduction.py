"""Results of the paper are made task by task, stored, resumed, and compared with its claims."""

import csv
import json

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.experiments.store import FileStore, read_results
from flmarket_sim.experiments.worker_processes import Processes
from flmarket_sim.paper.claims import verdicts
from flmarket_sim.paper.differences import why
from flmarket_sim.paper.reproduction import RESULTS, chosen, experiment, reproduce
from flmarket_sim.scenario.shipped import scenario_path
from flmarket_sim.studies.study_run import TASKS, find_out, study_of
from tests.support.command_line import flmarket, json_output
from tests.support.paths import ROOT

SMALL = ["--set", "data.name=synthetic", "--set", "data.records=4000", "--set", "owners.count=40"]
FEW = ["--set", "study.profiles=20", "--set", "study.factors=[0.5, 1.0, 2.0]"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Small versions of all results that need no training, by the command."""
    out = tmp_path_factory.mktemp("again")
    names = ["error-bound", "invalid-gradients", "aggregation", "surplus"]
    told = json_output(
        "reproduce",
        *names,
        "--out",
        str(out),
        "--page",
        str(out / "reproduction.md"),
        *SMALL,
        *FEW,
        "--json",
    )
    return out, told


def test_every_result_of_the_paper_has_a_scenario_that_says_what_it_is():
    for name in RESULTS:
        scenario = experiment(name, quick=False)
        assert scenario.name == name and scenario.description and scenario.study
        quick = experiment(name, quick=True)
        assert quick.digest() != scenario.digest()
    assert chosen(["all"]) == list(RESULTS)
    with pytest.raises(InputError, match="error-bound"):
        chosen(["figure-9"])


def test_what_is_set_by_hand_stays_so_in_a_quick_version():
    by_hand = experiment("error-bound", quick=True, overrides=["study.profiles=21"]).study.options
    assert by_hand["profiles"] == 21 and by_hand["factors"] == [0.1, 0.5, 1.0, 1.5, 2.0]


def test_stored_results_know_their_weights(tmp_path):
    """Other files under the same names are another result."""
    keys = []
    for content in (b"one", b"two"):
        (tmp_path / "reg_nslkdd_iid.pt").write_bytes(content)
        market = study_of(experiment("error-bound", True)).markets[0]
        keys.append(
            market.identities(
                ["all-in", "regretnet", "published-regretnet"], ["opt-aggr"], str(tmp_path)
            )
        )
    assert keys[0][:2] == keys[1][:2] and keys[0][2] != keys[1][2] and None not in keys[0]


def test_a_study_of_the_paper_can_be_asked_alone(tmp_path):
    told = flmarket(
        "study", "scenarios/paper/error-bound.toml", *SMALL, *FEW, "--out", tmp_path / "study"
    )
    assert told.returncode == 0 and "first-best" in (tmp_path / "study" / "table.md").read_text(), (
        told.stderr
    )
    assert json.loads((tmp_path / "study" / "study.json").read_text())["sentences"]


def test_results_that_share_their_tasks_make_them_once(made):
    out, told = made
    assert len(read_results(out / TASKS)) == 2 * 3  # markets x budget factors, for four results
    assert (
        set(told["results"]) == {"error-bound", "invalid-gradients", "aggregation", "surplus"}
        and not told["failed"]
    )


def test_a_page_shows_figure_table_and_verdict_of_each_result(made):
    out, told = made
    page = (out / "reproduction.md").read_text()
    for name, judged in told["results"].items():
        for suffix in ("png", "svg", "csv", "parquet"):
            assert (out / "reproduction" / f"{name}.{suffix}").stat().st_size > 100
        assert f"reproduction/{name}.png" in page
        assert all(verdict["claim"] in page and verdict["evidence"] in page for verdict in judged)


def test_a_cell_of_figure_one_is_what_a_market_at_a_time_gives(made):
    out, _ = made
    with (out / "reproduction" / "error-bound.csv").open() as file:
        rows = {
            (r["market"], r["auction"], r["rule"], float(r["budget_factor"])): r
            for r in csv.DictReader(file)
        }
    row = rows["non-IID", "all-in-critical", "convl-aggr", 0.5]
    settings = [setting for setting in SMALL + FEW if setting != "--set"]
    scenario = experiment("error-bound", False, overrides=settings)
    market = study_of(scenario).markets[1].of(scenario)
    truth = fm.draw_profiles(market, 20, seed=scenario.seed + 1)
    errors, spent = [], []
    for k in range(20):
        one = truth.take(slice(k, k + 1))
        budget = 0.5 * one.total_value()
        outcome = fm.auctions.create("all-in-critical").decide(
            one.bids(), budget, np.random.default_rng(0)
        )
        winners = outcome.privacy_loss[0] > 0
        weights = np.where(winners, one.data_size[0], 0) / one.data_size[0][winners].sum()
        shares = one.data_size[0] / one.data_size[0].sum()
        noise = sum(
            w**2 * 8 / e**2 for w, e in zip(weights, outcome.privacy_loss[0], strict=True) if e > 0
        )
        errors.append(noise + np.abs(weights - shares).sum() ** 2)
        spent.append(outcome.payment.sum() / budget[0])
    assert float(row["error_bound"]) == pytest.approx(np.mean(errors), rel=1e-4)
    assert float(row["spent_share"]) == pytest.approx(np.mean(spent), rel=1e-4)
    assert float(row["spent_share"]) == pytest.approx(
        float(row["cost_share"]) + float(row["surplus_share"]), rel=1e-3
    )


@pytest.fixture
def small_figure():
    settings = [setting for setting in SMALL + FEW if setting != "--set"]
    return experiment("error-bound", False, overrides=[*settings, "study.auctions=['all-in']"])


def test_finished_tasks_are_not_done_again_and_a_torn_one_is(tmp_path, small_figure):
    path = tmp_path / TASKS
    with FileStore(path) as store:
        first = find_out(small_figure, crew=Processes(2), store=store)
    path.write_bytes(path.read_bytes()[:-20])
    calls = []
    with FileStore(path) as store:
        again = find_out(small_figure, store=store, progress=lambda *done: calls.append(done))
    assert calls == [(5, 6), (6, 6)]
    assert again.rows == first.rows == find_out(small_figure).rows


def test_two_reproductions_do_not_share_a_directory(tmp_path, small_figure):
    with (
        FileStore(tmp_path / TASKS),
        pytest.raises(InputError, match="another process keeps its results"),
    ):
        reproduce(["error-bound"], tmp_path, quick=True)


def test_a_task_that_fails_says_which_and_why():
    scenario = experiment("accuracy", True)
    scenario = scenario.model_copy(
        update={"data": scenario.data.model_copy(update={"name": "no-such-data"})}
    )
    with pytest.raises(FlmarketError, match=r"(?s)accuracy, task .*seed.*no-such-data"):
        find_out(scenario)


def test_accuracy_levels_and_guarantees_run_small(tmp_path):
    """The three studies that train or learn, with digits for NSL-KDD and two training steps."""
    common = ["--out", str(tmp_path), "--quick", "--json", "--workers", "1"]
    digits = ["--set", "data.name=digits", "--set", "owners.count=12", "--set", "rounds=4"]
    told = json_output("reproduce", "accuracy", *common, *digits, "--set", "study.seeds=2")
    assert told["results"]["accuracy"][0]["outcome"] in (
        "cannot be told apart",
        "holds",
        "holds in part",
        "does not hold",
    )
    few = [
        "study.quick.instances=2",
        "study.quick.steps=2",
        "study.quick.profiles=4",
        "study.quick.attacked=2",
        "study.quick.probed=1",
        'study.effort="quick"',
        "study.ascent=5",
    ]
    few += ["study.levels=[1, 2]", 'study.markets=[{name="IID", partition={name="iid"}}]']
    levels = [part for setting in few for part in ("--set", setting)]
    told = json_output("reproduce", "levels", *common, *SMALL, *levels)
    assert "M = 1 to 2" in told["results"]["levels"][1]["evidence"]
    few = ["study.quick.profiles=3", "study.quick.probed=1", 'study.effort="quick"']
    few += ["study.ascent=5"]
    nets = [part for setting in few for part in ("--set", setting)]
    told = json_output("reproduce", "guarantees", *common, *SMALL, *nets)
    assert (
        told["results"]["guarantees"][0]["outcome"] == "not asked"
    )  # the authors' files are not here
    page = (tmp_path / "guarantees.md").read_text()
    assert "0.0556" in page and "quick version" in page and "1 of 7 results (guarantees)" in page
    assert "another network, trained here" in page  # a sentence for every number of the paper


def test_a_result_that_cannot_be_made_does_not_stop_the_others(tmp_path):
    (tmp_path / "broken.py").write_text(
        "from torch import nn\n"
        "class Model(nn.Module):\n"
        "    def __init__(self, *a, **b):\n"
        "        raise ValueError('no model today')\n"
    )
    out = flmarket(
        "reproduce", "accuracy", "surplus", "--out", tmp_path / "out", "--json", "--workers", "1",
        *SMALL, "--set", "model.name=broken:Model", "--set", "study.auctions=['all-in']", "--quick",
        env={"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert out.returncode == 1, out.stderr
    told = json.loads(out.stdout)
    assert list(told["results"]) == ["surplus"] and "no model today" in told["failed"]["accuracy"]
    assert "accuracy" in out.stderr and "Traceback" not in out.stderr


def test_a_wrong_name_or_folder_is_refused_before_any_work(tmp_path):
    for arguments in (
        ["figure-9"],
        ["surplus", "--authors", str(tmp_path)],
        ["surplus", "--set", "study.profile=3"],
    ):
        out = flmarket("reproduce", *arguments, "--out", str(tmp_path / "out"))
        assert out.returncode == 2 and "Traceback" not in out.stderr, out.stderr
    assert not (tmp_path / "out").exists()


def error_rows(dm, rival):
    rows = []
    for market in ("IID", "non-IID"):
        for factor in (1.0, 2.0):
            for name, error in (("dm-regretnet", dm), ("regretnet", rival), ("m-regretnet", rival)):
                row = {
                    "market": market,
                    "rule": "opt-aggr",
                    "auction": name,
                    "budget_factor": factor,
                }
                ends = {f"error_bound{end}": error / factor for end in ("", "_low", "_high")}
                rows.append(row | ends | {"error_over_first_best": 2.0})
    return rows


def test_verdicts_follow_the_numbers():
    good, falls, _ = verdicts("error-bound", error_rows(1.0, 2.0))
    assert good.outcome == falls.outcome == "holds"
    bad, *_ = verdicts("error-bound", error_rows(3.0, 2.0))
    assert bad.outcome == "does not hold"
    mixed, *_ = verdicts("error-bound", error_rows(1.0, 2.0)[:6] + error_rows(3.0, 2.0)[6:])
    assert mixed.outcome == "holds in part"

    overlapping = error_rows(1.0, 2.0)
    for row in overlapping:
        row |= {"error_bound_low": 0.0, "error_bound_high": 9.0}
    assert [v.outcome for v in verdicts("error-bound", overlapping)][:2] == [
        "cannot be told apart"
    ] * 2

    def accuracy(low, high):
        row = {
            "market": "IID",
            "rule": "opt-aggr",
            "auction": "regretnet",
            "round": 100,
            "over_baseline": (low + high) / 2,
        }
        same = {"over_last_rule": 0.0, "over_last_rule_low": -1.0, "over_last_rule_high": 1.0}
        mine = (
            row
            | {
                "auction": "dm-regretnet",
                "over_baseline": 0.0,
                "over_baseline_low": 0.0,
                "over_baseline_high": 0.0,
            }
            | same
        )
        return [row | {"over_baseline_low": low, "over_baseline_high": high} | same, mine]

    outcomes = [
        verdicts("accuracy", accuracy(*ends))[0].outcome
        for ends in ((-0.2, -0.1), (-0.1, 0.1), (0.1, 0.2))
    ]
    assert outcomes == ["holds", "cannot be told apart", "does not hold"]


def test_published_networks_are_judged_apart_from_ours():
    ours, theirs = error_rows(3.0, 2.0), error_rows(1.0, 2.0)
    for row in theirs:
        row["auction"] = f"published-{row['auction']}"
    found = {
        v.claim: v.outcome
        for v in verdicts("error-bound", ours + theirs)
        if "lower error bound" in v.claim
    }
    assert sorted(found.values()) == ["does not hold", "holds"]
    assert (
        next(outcome for claim, outcome in found.items() if "published weights" in claim) == "holds"
    )


@pytest.mark.parametrize(
    "name", [name for name in RESULTS if name not in ("levels", "accuracy", "guarantees")]
)
def test_what_was_not_asked_for_is_not_judged(name):
    """`--set` may leave auctions, rules or factors out; that is no reason to fail after hours."""
    row = {
        "market": "IID",
        "auction": "all-in",
        "rule": "opt-aggr",
        "budget_factor": 0.5,
        "invalid_rate": 0.0,
        "saving": None,
    }
    row |= {
        "error_bound": 1.0,
        "error_bound_low": 0.9,
        "error_bound_high": 1.1,
        "error_over_first_best": 1.0,
        "spent_share": 0.5,
    }
    assert {v.outcome for v in verdicts(name, [row])} <= {"not asked", "beyond the paper"}


def levels_row(levels, regret, bought, networks="weights trained here"):
    ends = {
        f"{key}{end}": regret
        for key in ("as_published", "axis_mended", "corrected", "probed", "ir_as_published")
        for end in ("", "_low", "_high")
    }
    row = {"market": "IID", "networks": networks, "levels": levels, "privacy_bought": bought}
    return row | ends


def test_a_net_that_buys_nothing_is_no_evidence_for_more_levels():
    row = levels_row
    asked, judged = verdicts("levels", [row(1, 0.3, 0.5), row(8, 0.1, 0.4)])
    assert asked.outcome == "not asked" and judged.outcome == "holds"
    idle = verdicts("levels", [row(1, 0.3, 0.5), row(4, 0.4, 0.3), row(8, 0.0, 0.001)])[1]
    assert idle.outcome == "does not hold" and "0.1% at M = 8" in idle.evidence


def test_published_instances_are_judged_step_by_step():
    theirs = "published weights"
    rows = [levels_row(m, r, 0.5, theirs) for m, r in ((1, 0.9), (2, 0.7), (4, 0.8), (8, 0.6))]
    steps, _ = verdicts("levels", rows)
    assert steps.outcome == "holds" and theirs in steps.claim
    assert "it falls from M = 1 to 2, 4 to 8" in steps.evidence
    rising = [levels_row(1, 0.5, 0.5, theirs), levels_row(2, 0.7, 0.5, theirs)]
    steps, _ = verdicts("levels", rising)
    assert steps.outcome == "does not hold" and "no step is a fall" in steps.evidence


def table_row(paper, **measured):
    row = {"market": "non-IID", "auction": "published-dm-regretnet", "rule": "opt-aggr"}
    row |= {"paper_regret": paper, "paper_ir": paper, "gaining": 0.9, "luck": float("nan")}
    default = ("as_published", "axis_mended", "corrected", "probe", "ir_as_published")
    numbers = dict.fromkeys((*default, "ir_tested_on"), paper) | measured
    for key, value in numbers.items():
        row |= {key: value, f"{key}_low": 0.99 * value, f"{key}_high": 1.01 * value}
    return row | {"probe_median": numbers["probe"]}


def test_the_published_table_is_judged_by_the_rows():
    regret, ir, bound, *_ = verdicts("guarantees", [table_row(0.05)])
    assert [regret.outcome, ir.outcome] == ["holds"] * 2
    assert bound.outcome == "cannot be told apart"  # no search can confirm it
    far = table_row(0.05, as_published=0.06, ir_as_published=0.06, probe=0.4)
    regret, ir, bound, *_ = verdicts("guarantees", [far])
    assert [regret.outcome, ir.outcome, bound.outcome] == ["does not hold"] * 3
    assert "0 of 1 numbers agree within 15%" in regret.evidence
    mixed, *_ = verdicts("guarantees", [far, table_row(0.05)])
    assert mixed.outcome == "holds in part" and "1 of 2" in mixed.evidence


def test_the_reason_for_other_ir_violations_is_computed():
    nearer = why("guarantees", [table_row(0.05, ir_as_published=0.07)], {})[-1]
    assert "up to 40% off" in nearer and "Such sizes would fit" in nearer
    farther = why("guarantees", [table_row(0.05, ir_tested_on=0.07)], {})[-1]
    assert "do not explain the table" in farther


def test_the_committed_page_is_complete():
    page = (ROOT / "docs" / "reproduction.md").read_text()
    for name, title in RESULTS.items():
        assert f"## {title}" in page
        for suffix in ("png", "csv"):
            assert (ROOT / "docs" / "reproduction" / f"{name}.{suffix}").exists()
        assert scenario_path(f"paper/{name}").exists()
    assert "quick version" not in page


def committed_rows(name):
    """The rows behind a result of the committed page; four results share those of error-bound."""
    shared = ("invalid-gradients", "aggregation", "surplus")
    path = ROOT / "docs" / "reproduction" / f"{'error-bound' if name in shared else name}.csv"
    with path.open() as file:
        rows = [{key: number(text) for key, text in row.items()} for row in csv.DictReader(file)]
    for row in rows:
        auction, published, _ = row.get("auction", "").partition(" (published weights)")
        row["auction"] = f"published-{auction}" if published else auction
    return rows


def number(text):
    try:
        return float(text) if "." in text or "e" in text else int(text)
    except ValueError:
        return text or None


@pytest.mark.parametrize("name", RESULTS)
def test_the_committed_page_says_what_follows_from_its_rows(name):
    page, rows = (ROOT / "docs" / "reproduction.md").read_text(), committed_rows(name)
    for verdict in verdicts(name, rows):
        assert f"- **{verdict.claim}: {verdict.outcome}.** {verdict.evidence}." in page
    for sentence in why(name, rows, experiment(name, quick=False).study.options):
        assert sentence in page
