"""Every study of the repository runs in small, and writes table, rows, figure and sentences."""

import json

import pyarrow.parquet as pq
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.experiments.market_runs import changed
from flmarket_sim.paper.reproduction import RESULTS, experiment
from flmarket_sim.plugins import registry
from flmarket_sim.report import study_folder as report
from flmarket_sim.statistics import estimate, from_seeds
from flmarket_sim.studies.study_run import find_out
from tests.support.command_line import flmarket, json_output
from tests.support.paths import ROOT

SMALL = {
    "misreport-gain": ["profiles=3", "factors=[0.5]", 'effort="quick"'],
    "single-minded": ["profiles=3", "factors=[0.5]", 'effort="quick"'],
    "published-regret": ["profiles=2", "steps=3", 'effort="quick"'],
    "strategic-share": ["seeds=2", "shares=[0.0, 1.0]", 'auctions=["all-in-critical"]'],
    "rest-point": ["profiles=2", "max_sweeps=2", 'auctions=["all-in", "posted-price"]'],
    "learners": ["seeds=2", "blocks=2", 'auctions=["pay-as-bid"]'],
    "coalition": ["profiles=2", "sizes=[2]", 'auctions=["all-in", "fair-query"]'],
    "false-names": ["profiles=2", "names=[2]", 'auctions=["all-in", "fair-query"]'],
    "arbitrage": ["profiles=16", "groups=2", "purchases=[2]", 'auctions=["all-in"]'],
    "model-quality": ["seeds=2"],
    "bank-quality": ["seeds=2"],
    "first-market": ["seeds=2"],
    "poisoned-markets": ["seeds=2"],
    "cheating": [
        "seeds=2",
        "losses=[1.0, 2.0]",
        'auctions=["posted-price"]',
        'cheats=["sign-flip", "stale"]',
        'checks=["variance"]',
    ],
    "detection": ["seeds=2", "losses=[2.0]", 'checks=["variance", "likelihood-ratio"]'],
    "cheat-share": ["seeds=2", "shares=[0.4]", 'cheats=[{name="sign-flip"}]'],
    "buyers-curve": ["seeds=2", "factors=[0.3, 1.0]", 'auctions=["all-in-critical"]'],
    "second-best": [
        "profiles=12",
        "kappas=[8.0]",
        'auctions=["seq-price", "all-in-critical by precision"]',
    ],
    "second-best-noniid": ["profiles=8", "kappas=[4880.0]", 'auctions=["seq-price"]'],
    "regimes": ["profiles=20", "kappas=[8.0, 4920.0]", 'auctions=["all-in-critical"]'],
    "bargains": ["profiles=8", "kappas=[8.0, 4920.0]"],
}
SHORT = ["rounds=4", "model.evaluate_every=2"]
INSTEAD = 'data={name="synthetic", records=20000, features=4, classes=2}'
OTHERWISE = {  # shorter runs, and data that everybody has
    "learners": ["rounds=20"],
    "strategic-share": ["rounds=20"],
    "model-quality": [*SHORT, INSTEAD],
    "bank-quality": [*SHORT, INSTEAD],
    "poisoned-markets": [*SHORT, INSTEAD],
    "cheating": ["rounds=2", "model.evaluate_every=2"],
    "detection": ["rounds=2", "model.evaluate_every=2"],
    "cheat-share": ["rounds=2", "model.evaluate_every=2"],
    "first-market": SHORT,
    "buyers-curve": ["rounds=4", INSTEAD],
}


def test_every_study_has_a_scenario_and_every_scenario_its_small_version():
    asked = {}
    for path in (ROOT / "scenarios/studies").glob("*.toml"):
        scenario = fm.load_scenario(path)
        if scenario.study is not None:
            asked[path.stem] = scenario.study.name
    again = {
        experiment(name, quick=True).study.name for name in RESULTS
    }  # small versions: test_reproduction.py
    own = {"league"}  # it has a card in place of a scenario, and a small one in tests/league
    assert set(asked) == set(SMALL)
    assert set(asked.values()) | again | own == set(registry.studies.names())


@pytest.mark.parametrize("name", SMALL)
def test_a_study_finds_something_and_writes_it_down(name, tmp_path):
    settings = [f"study.{setting}" for setting in SMALL[name]] + OTHERWISE.get(name, [])
    scenario = fm.load_scenario(ROOT / f"scenarios/studies/{name}.toml", settings)
    heard = []
    finding = find_out(scenario, progress=lambda done, total: heard.append((done, total)))
    assert heard[-1][0] == heard[-1][1] and finding.rows and finding.sentences
    report.write(finding, tmp_path, scenario)
    assert pq.read_table(tmp_path / "rows.parquet").num_rows == len(finding.rows)
    assert (tmp_path / "table.md").read_text().count("\n") == len(finding.rows) + 2
    assert (tmp_path / "figure.png").stat().st_size > 5_000 and "<svg" in (
        tmp_path / "figure.svg"
    ).read_text()
    assert json.loads((tmp_path / "study.json").read_text())["scenario_sha256"] == scenario.digest()


def test_the_command_line_asks_the_question_of_a_file(tmp_path):
    path, out = ROOT / "scenarios/studies/single-minded.toml", tmp_path / "out"
    settings = [
        part for setting in SMALL["single-minded"] for part in ("--set", f"study.{setting}")
    ]
    told = json_output("study", path, *settings, "--out", out, "--json")
    assert told["directory"] == str(out) and {row["auction"] for row in told["rows"]} >= {
        "all-in",
        "all-in-critical",
    }
    again = flmarket("study", path, *settings, "--out", out)
    assert again.returncode == 2 and "not empty" in again.stderr
    none = flmarket("study", ROOT / "scenarios/quickstart.toml")
    assert (
        none.returncode == 2 and "asks no question" in none.stderr and "rest-point" in none.stderr
    )
    wrong = flmarket("study", path, "--set", "study.auctions=['all-inn']")
    assert (
        wrong.returncode == 2
        and "did you mean 'all-in'" in wrong.stderr
        and "Traceback" not in wrong.stderr
    )


def test_probe_on_the_command_line(tmp_path):
    common = [
        "probe",
        "all-in",
        "--scenario",
        "scenarios/paper/iid.toml",
        "--profiles",
        "5",
        "--effort",
        "quick",
    ]
    shown = flmarket(*common, "--out", tmp_path / "p.parquet")
    assert (
        shown.returncode == 0 and "lower bound" in shown.stdout and "privacy budget" in shown.stdout
    ), shown.stderr
    assert pq.read_table(tmp_path / "p.parquet").num_rows == 50
    told = json_output(*common, "--budgets", "0.5:1.0:0.5", "--json")
    assert told["lower_bound"] and len(told["by_budget"]) == 2 and told["markets"] == 10
    for wrong in (["--effort", "lazy"], ["--budgets", "x"]):
        result = flmarket(*common, *wrong)
        assert result.returncode == 2 and "Traceback" not in result.stderr


def test_a_probe_on_the_command_line_is_certified_from_above():
    market = ("--scenario", "scenarios/paper/iid.toml", "--profiles", "2", "--effort", "quick")
    shown = flmarket("probe", "all-in", *market, "--certify", "--nodes", "200")
    assert shown.returncode == 0 and "certified" in shown.stdout, shown.stderr
    assert max(len(line) for line in shown.stdout.splitlines()) <= 80
    told = json_output("probe", "seq-price", *market, "--certify", "--json")
    assert told["certified"]["method"] == "menu" and told["certified"]["upper_bound"]
    assert told["certified"]["by_family"]["all"]["certified"] < 1e-6  # single precision


def test_a_changed_scenario_is_checked_again():
    scenario = fm.load_scenario(ROOT / "scenarios/quickstart.toml")
    assert changed(scenario, market__bidders=7).market.bidders == 7
    with pytest.raises(InputError):
        changed(scenario, market__bidders=1000)


def test_intervals_hold_the_mean_as_often_as_they_say():
    import numpy as np

    rng = np.random.default_rng(0)
    hits = [from_seeds(rng.normal(1.0, 1.0, 5)) for _ in range(400)]
    assert 0.92 < np.mean([found.low <= 1.0 <= found.high for found in hits]) < 0.98
    hits = [estimate(rng.normal(1.0, 1.0, 60), seed=k) for k in range(100)]
    assert 0.87 < np.mean([found.low <= 1.0 <= found.high for found in hits]) <= 1.0
    assert np.isnan(estimate(np.full(3, np.nan)).mean) and from_seeds(np.array([2.0])).mean == 2.0


def test_questions_that_cannot_be_asked_are_refused_before_anything_is_run(tmp_path):
    for file, setting, why in (
        ("arbitrage", "study.groups=500", "groups need as many populations"),
        ("published-regret", "study.auctions=['all-in']", "no network"),
        ("coalition", "study.sizes=[99]", "market.bidders"),
    ):
        out = tmp_path / file
        told = flmarket(
            "study", ROOT / f"scenarios/studies/{file}.toml", "--set", setting, "--out", out
        )
        assert told.returncode == 2 and why in told.stderr and "Traceback" not in told.stderr, (
            told.stderr
        )
        assert not out.exists()
    market = ["--scenario", "scenarios/paper/iid.toml", "--profiles", "2", "--effort", "quick"]
    assert (
        "1,000 are the most"
        in flmarket("probe", "all-in", *market, "--budgets", "1e-9:1:1e-9").stderr
    )
    told = flmarket("probe", "all-in", *market, "--out", tmp_path)
    assert told.returncode == 2 and "names a file for a table" in told.stderr
