"""Real results to report on, made once: runs, a probe, a study's directory, a sweep's."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import flmarket_sim as fm
from flmarket_sim.owners.population import draw_markets
from flmarket_sim.report import study_folder as study_report
from flmarket_sim.scenario.scenario_file import load_scenario
from flmarket_sim.strategy.probe_file import write_probe
from flmarket_sim.studies.study import Finding, Plot
from tests.support.paths import ROOT
from tests.support.sealed_json import write_sealed

EVIL = "<script>alert(1)</script>"


def run_of(folder, file, *settings):
    return fm.run(load_scenario(ROOT / "scenarios" / file, settings), folder).path


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="session")
def quickstart(results):
    return run_of(results / "quick", "quickstart.toml", "rounds=5")


@pytest.fixture(scope="session")
def paid_as_bid(results):
    return run_of(results / "as-bid", "quickstart.toml", "rounds=5", "auction.name=pay-as-bid")


@pytest.fixture(scope="session")
def liars(results):
    return run_of(results / "liars", "studies/liars.toml", "rounds=4")


@pytest.fixture(scope="session")
def evil(quickstart, results):
    """A directory from somebody else; it may have names that scenarios refuse."""
    folder = results / "evil"
    shutil.copytree(quickstart, folder)
    info = fm.read_run(folder)
    info["scenario"] |= {
        "name": EVIL,
        "description": "<!--<b>bold</script><img src=x onerror=alert(2)>",
    }
    info["versions"] |= {EVIL: EVIL}
    for key in ("files", "frames"):
        info.pop(key, None)
    write_sealed(folder / "run.json", info)
    rounds = fm.read_events(folder, "round")
    names = pa.array([EVIL, "</script><img src=x onerror=alert(2)>"] * rounds.num_rows)[
        : rounds.num_rows
    ]
    part = next((folder / "events" / "kind=round").glob("part-*.parquet"))
    pq.write_table(rounds.set_column(rounds.column_names.index("buyer"), "buyer", names), part)
    return folder


@pytest.fixture(scope="session")
def probe_file(results):
    market = load_scenario(ROOT / "scenarios/quickstart.toml")
    truth, factor = draw_markets(market, 6, None, 0)
    found = fm.strategy.probe(
        fm.auctions.create("all-in"), truth, factor * truth.total_value(), seed=0, effort="quick"
    )
    facts = {
        "auction": "all-in",
        "scenario": market.name,
        "scenario_sha256": market.digest(),
        "effort": "quick",
    }
    return write_probe(found, results / "lies.parquet", facts)


@pytest.fixture(scope="session")
def study(results):
    rows = [
        {"auction": name, "names": names, "gain": 0.1 * names, "gain_low": 0.05, "gain_high": 0.4}
        for name in ("all-in", EVIL)
        for names in (2, 3)
    ]
    folder = results / "study"
    folder.mkdir()
    finding = Finding(rows, Plot("names", "gain", "auction", "names", "gain"), ["Names pay."])
    scenario = load_scenario(ROOT / "scenarios/studies/false-names.toml")
    study_report.write(finding, folder, scenario)
    return folder


def sweep_in(folder, shift=0.0):
    """A small sweep of four seeds, two auctions and three budgets, with a failed run."""
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(4):
        luck = rng.normal()
        for auction in ("all-in", "pay-as-bid"):
            for factor in (0.3, 0.6, 0.9):
                error = 1 / factor + luck + (0.5 if auction == "all-in" else 0.0) + shift
                rows.append(
                    {
                        "run": f"run-{len(rows):03d}", "seed": seed, "auction.name": auction,
                        "budget.factor": factor, "buyer": "buyer", "outcome": "finished",
                        "stage": None, "message": None, "spent": 100 * factor,
                        "budget": 200 * factor, "mean_error_bound": error, "final_accuracy": None,
                        "privacy_sold": 3.0, "owners_surplus": 1.0,
                    }
                )  # fmt: skip
    rows.append(
        rows[-1]
        | {
            "run": "run-999",
            "outcome": "failed",
            "stage": "auction",
            "message": EVIL,
            "mean_error_bound": None,
        }
    )
    folder.mkdir()
    scenario = load_scenario(ROOT / "scenarios/quickstart.toml").as_dict()
    (folder / "sweep.json").write_text(
        json.dumps({"scenario": scenario, "scenario_sha256": "abc", "versions": {"numpy": "2"}})
    )
    pq.write_table(pa.Table.from_pylist(rows), folder / "summary.parquet")
    return folder


@pytest.fixture(scope="session")
def sweep(results):
    return sweep_in(results / "sweep")
