"""Runs on the user's own data: real owners, hashes in run.json, and what resume refuses."""

import gc
import json

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError, ScenarioError
from flmarket_sim.experiments import market_runs
from flmarket_sim.learning.partitions import Given, held
from flmarket_sim.scenario.scenario_file import build_scenario

OWNERS = ("ann", "bob", "cat", "dan", "eve", "fay")


def arrays(seed=0, owners=True, records=240):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(records, 4))
    y = (x[:, 0] > 0).astype(int)
    who = np.repeat(OWNERS, [10, 20, 30, 40, 60, 80]) if owners else None
    return fm.Dataset.from_arrays(x, y, owners=who)


def small(**tables):
    return {
        "rounds": 3,
        "market": {"bidders": 3},
        "owners": {"partition": {"name": "given"}},
    } | tables


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 2))
    lines = ["a,b,who,y"]
    lines += [f"{a:.4f},{b:.4f},{OWNERS[i % 6]},{int(a > 0)}" for i, (a, b) in enumerate(x)]
    (tmp_path / "own.csv").write_text("\n".join(lines) + "\n")
    return {"name": "csv", "path": "own.csv", "label": "y", "owner": "who"}


def stopped(scenario, folder, data=None, **changes):
    """A run that was interrupted after its first round."""

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fm.run(scenario, folder, progress=stop, data=data, **changes)
    return folder


def test_the_real_owners_hold_their_own_records(file, tmp_path):
    run = fm.run(build_scenario(small(data=file)), tmp_path / "run")
    data = fm.load_data(run.scenario)
    owners = fm.read_owners(run.path).to_pylist()
    assert run.scenario.owners.count == 6
    assert [owner["name"] for owner in owners] == list(OWNERS)
    for owner in owners:
        rows = np.array(owner["records"])
        assert owner["data_size"] == len(rows) > 0
        assert {data.owner_names[i] for i in data.owners[rows]} == {owner["name"]}
    together = sorted(row for owner in owners for row in owner["records"])
    assert together == list(range(len(data.train_y)))


def test_without_learning_the_sizes_are_the_same(file, tmp_path):
    learning = fm.run(build_scenario(small(data=file)), tmp_path / "a")
    none = fm.run(build_scenario(small(data=file, model={"name": "none"})), tmp_path / "b")
    sizes = [fm.read_owners(run.path)["data_size"].to_pylist() for run in (learning, none)]
    assert sizes[0] == sizes[1]


def test_fewer_owners_are_those_with_the_most_records():
    data = arrays()
    counts = data.owner_counts()
    chosen = Given().chosen(counts, 2)
    assert {data.owner_names[i] for i in chosen} == {"eve", "fay"}
    rows, offsets = held(data.owners, chosen)
    assert {data.owner_names[i] for i in data.owners[rows[: offsets[1]]]} == {"eve"}
    assert np.diff(offsets).tolist() == counts[chosen].sum(axis=1).tolist()
    with pytest.raises(InputError, match=r"the data have 6 owners, but owners.count is 7"):
        Given().chosen(counts, 7)


def test_a_scenario_with_too_many_or_no_owners_is_refused(file):
    owners = {"partition": {"name": "given"}, "count": 9}
    with pytest.raises(ScenarioError, match=r"owners\.count: the data have 6 owners"):
        build_scenario(small(data=file, owners=owners))
    del file["owner"]
    with pytest.raises(ScenarioError, match="the data do not say who holds which record"):
        build_scenario(small(data=file | {"ignore": ["who"]}))
    with pytest.raises(ScenarioError, match="the data do not say who holds which record"):
        build_scenario(small())


def test_a_run_on_arrays_says_so_and_has_their_hash(tmp_path):
    data, other = arrays(), arrays(seed=1)
    runs = [
        fm.run(build_scenario({"rounds": 2}), tmp_path / str(i), data=one, owners__count=12)
        for i, one in enumerate((data, other, arrays()))
    ]
    tables = [json.loads((run.path / "run.json").read_text())["scenario"]["data"] for run in runs]
    assert tables[0] == {"name": "arrays", "sha256": data.sha256(), "features": 4, "classes": 2}
    assert tables[1]["sha256"] == other.sha256() != data.sha256()
    digests = [run.info["scenario_sha256"] for run in runs]
    assert digests[0] == digests[2] != digests[1]
    assert fm.load_data(runs[0].scenario).sha256() == data.sha256()


def test_a_changed_name_or_owner_changes_the_hash():
    data = arrays()
    parts = (data.train_x, data.train_y, data.test_x, data.test_y)
    renamed = fm.Dataset(*parts, ("no", "yes"), data.owners, data.owner_names)
    moved = fm.Dataset(*parts, data.classes, data.owners[::-1].copy(), data.owner_names)
    assert len({one.sha256() for one in (data, renamed, moved, arrays(owners=False))}) == 4


def test_the_scenarios_own_data_keep_their_name(tmp_path):
    table = {"name": "synthetic", "records": 2000, "features": 3, "classes": 2}
    scenario = build_scenario({"rounds": 1, "data": table})
    data = fm.load_data(scenario)
    assert fm.run(scenario, tmp_path / "own", data=data).scenario.data.name == "synthetic"
    assert fm.run(scenario, tmp_path / "seed", data=data, seed=1).scenario.data.name == "arrays"
    data.train_x[0, 0] += 0.5
    assert fm.run(scenario, tmp_path / "changed", data=data).scenario.data.name == "arrays"


def test_a_run_on_arrays_resumes_with_the_same_arrays_only(tmp_path):
    data = arrays()
    scenario = build_scenario({"rounds": 3, "market": {"bidders": 3}})
    whole = fm.run(scenario, tmp_path / "whole", data=data, owners={"partition": "given"})
    folder = stopped(scenario, tmp_path / "stopped", data, owners={"partition": "given"})
    with pytest.raises(InputError, match="not the arrays of"):
        fm.resume(folder, data=arrays(seed=2))
    same = arrays()
    del data
    resumed = fm.resume(folder, data=same)
    assert resumed.rounds.to_pylist() == whole.rounds.to_pylist()


def test_a_run_on_forgotten_arrays_says_what_it_needs(tmp_path):
    few = build_scenario({"rounds": 3, "owners": {"count": 10}})
    folder = stopped(few, tmp_path / "run", arrays(seed=9))
    gc.collect()  # nobody has the arrays any more, as in another process
    with pytest.raises(InputError, match=r"fm\.resume\(.*data=\.\.\.\)"):
        fm.resume(folder)
    assert fm.Run(folder).scenario.data.name == "arrays"  # reading needs no arrays


def test_a_run_on_a_file_resumes_unless_the_file_has_changed(file, tmp_path):
    scenario = build_scenario(small(data=file))
    whole = fm.run(scenario, tmp_path / "whole")
    folder = stopped(scenario, tmp_path / "run")
    path = tmp_path / "own.csv"
    before = path.read_bytes()
    path.write_bytes(before.replace(b"ann", b"zoe", 1))
    with pytest.raises(InputError, match=r"own.csv has changed since"):
        fm.resume(folder)
    path.write_bytes(before)
    with pytest.raises(InputError, match="a run on the data set 'csv', which is loaded again"):
        fm.resume(folder, data=arrays())
    assert fm.resume(folder).rounds.to_pylist() == whole.rounds.to_pylist()
    path.unlink()
    assert fm.Run(folder).scenario.data.name == "csv"  # a finished run needs no file


def test_a_changed_file_is_not_remembered_by_studies(file, tmp_path):
    scenario = build_scenario(small(data=file))
    before = market_runs.load_data(scenario)
    assert market_runs.load_data(scenario) is before
    path = tmp_path / "own.csv"
    path.write_text(path.read_text() + "0.5,0.5,ann,1\n")
    after = market_runs.load_data(scenario)
    assert len(after.train_y) + len(after.test_y) == len(before.train_y) + len(before.test_y) + 1
