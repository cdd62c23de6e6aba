"""The ledger's sums against dp-accounting, on what real markets sold."""

import itertools
import json
import math
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import flmarket_sim as fm
from flmarket_sim.cli.app import app
from flmarket_sim.errors import InputError
from flmarket_sim.privacy.accounting import GRID, composed_loss
from flmarket_sim.report.privacy_ledger import read, releases
from tests.support.paths import ROOT
from tests.support.sealed_json import without_hashes

dp_accounting = pytest.importorskip("dp_accounting", reason="the extra [privacy] is not installed")


@pytest.fixture(scope="module")
def liars(tmp_path_factory):
    """Rounds in which owners sell again and again, false names among them."""
    scenario = fm.load_scenario(
        ROOT / "scenarios/studies/liars.toml", ["rounds=20", "owners.count=40"]
    )
    return fm.run(scenario, tmp_path_factory.mktemp("ledger") / "run").path


def randomised_responses(losses, epsilon):
    """delta(epsilon) of randomised responses by all their outcomes: the slow way."""
    delta = 0.0
    for signs in itertools.product((1, -1), repeat=len(losses)):
        chance = math.prod(
            math.exp(s * e / 2) / (math.exp(e / 2) + math.exp(-e / 2))
            for s, e in zip(signs, losses, strict=True)
        )
        delta += chance * max(
            0.0, 1 - math.exp(epsilon - sum(s * e for s, e in zip(signs, losses, strict=True)))
        )
    return delta


@pytest.mark.parametrize("losses", [[1.0], [0.1] * 10, [0.3, 0.2, 0.7, 0.2, 0.05], [2.0, 0.5, 1.0]])
@pytest.mark.parametrize("delta", [1e-6, 1e-2])
def test_composition_is_that_of_all_outcomes_up_to_its_grid(losses, delta):
    found, total = composed_loss(losses, delta), sum(losses)
    assert found <= total * (1 + 1e-12)
    assert randomised_responses(losses, found) <= delta * (1 + 1e-6) or found == total
    slack = 2 * (len(losses) + 2) * total / GRID
    assert randomised_responses(losses, found - slack) >= delta


def test_many_small_losses_are_worth_less_than_their_sum_and_one_is_worth_itself():
    assert composed_loss([0.05] * 400, 1e-6) < 0.5 * 20.0
    assert composed_loss([1.3], 1e-9) == pytest.approx(1.3, rel=1e-4)
    assert composed_loss([1000.0, 2000.0], 1e-6) == 3000.0, "exp of that is no number"
    assert composed_loss([0.4, 0.8], 0.0) == pytest.approx(1.2) and composed_loss([], 1e-6) == 0.0
    with pytest.raises(InputError, match="delta"):
        composed_loss([1.0], 1.0)


def test_the_ledger_is_what_the_log_adds_up_to(liars):
    kept = fm.read_ledger(liars).column("privacy_sold").to_numpy()
    sold = releases(liars)
    assert {owner: math.fsum(losses) for owner, losses in sold.items()} == pytest.approx(
        {owner: kept[owner] for owner in np.flatnonzero(kept).tolist()}
    )
    assert max(map(len, sold.values())) > 5


def test_releases_of_a_run_cost_what_the_ledger_says_at_a_tiny_delta_and_less_at_a_larger(liars):
    kept = fm.read_ledger(liars).column("privacy_sold").to_numpy()
    sold = releases(liars)
    for owner in sorted(sold, key=lambda o: (-len(sold[o]), o))[:4]:
        accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-3)
        for loss in sold[owner]:  # scale 2 L / e at distance 2 L: a noise multiplier of 1 / e
            accountant.compose(dp_accounting.LaplaceDpEvent(1.0 / loss))
        rounding = 1e-3 * (len(sold[owner]) + 1)
        tiny, small = accountant.get_epsilon(1e-12), accountant.get_epsilon(1e-3)
        assert tiny == pytest.approx(
            kept[owner], abs=rounding
        )  # one draw in 2^k loses all of it: the sum is tight
        assert small < tiny - 2 * rounding
        assert small <= composed_loss(sold[owner], 1e-3) + rounding, (
            "Laplace tells no more than randomised response"
        )


def test_the_command_checks_the_ledger_and_fails_when_it_is_wrong(liars, tmp_path):
    def ask(*arguments):
        return CliRunner().invoke(app, ["privacy", "ledger", *map(str, arguments)])

    told = ask(liars, "--delta", "0.05", "--top", "3", "--json")
    found = json.loads(told.stdout)
    assert (
        told.exit_code == 0
        and found["wrong"] == []
        and found["checked"]
        and len(found["accounts"]) == 3
    )
    assert all(0 < account["composed"] < account["total"] for account in found["accounts"])
    assert read(liars, 1e-6, 1).false_names
    cheat = tmp_path / "cheat"
    cheat.mkdir()
    as_an_earlier_version(liars, cheat)
    table = fm.read_ledger(liars)
    less = pa.array(table.column("privacy_sold").to_numpy() * 0.5)
    pq.write_table(table.set_column(1, "privacy_sold", less), cheat / "ledger.parquet")
    assert ask(cheat).exit_code == 1
    assert len(read(cheat, 1e-6, 1).wrong) == len(releases(liars))


def as_an_earlier_version(run, folder):
    """The run without its ledger and without hashes, so that readers take another ledger."""
    for part in ("events", "owners.parquet"):
        (folder / part).symlink_to(run / part)
    shutil.copy(run / "run.json", folder)
    without_hashes(folder)


@pytest.fixture(scope="module")
def gaussian(tmp_path_factory):
    """Owners who sell again and again under a promise of (e, delta)."""
    settings = ["rounds=12", "owners.count=20", "perturbation.name=gaussian"]
    settings += ["perturbation.delta=0.0001", "aggregation.error=vector"]
    scenario = fm.load_scenario(ROOT / "scenarios/studies/liars.toml", settings)
    return fm.run(scenario, tmp_path_factory.mktemp("gaussian") / "run").path


def revealing_responses(losses, deltas, epsilon):
    """delta(epsilon) by all outcomes, if each release also reveals everything by its own chance."""
    hidden = math.prod(1 - delta for delta in deltas)
    return 1 - hidden + hidden * randomised_responses(losses, epsilon)


@pytest.mark.parametrize("losses", [[1.0], [0.1] * 10, [0.3, 0.2, 0.7, 0.2, 0.05]])
def test_releases_with_a_delta_compose_as_responses_that_may_reveal_everything(losses):
    deltas, delta = [1e-4 * (1 + i % 2) for i in range(len(losses))], 1e-2
    found, total = composed_loss(losses, delta, deltas), sum(losses)
    assert composed_loss(losses, delta) <= found <= total * (1 + 1e-12)
    assert revealing_responses(losses, deltas, found) <= delta * (1 + 1e-6) or found == total
    slack = 2 * (len(losses) + 2) * total / GRID
    assert revealing_responses(losses, deltas, found - slack) >= delta


def test_deltas_that_leave_nothing_of_the_target_allow_no_epsilon():
    assert composed_loss([1.0, 1.0], 1e-6, [1e-5, 1e-5]) == math.inf
    assert composed_loss([1.0, 1.0], 0.0, [1e-5, 0.0]) == math.inf
    assert composed_loss([1.0, 1.0], 2e-5, [1e-5, 1e-5]) == pytest.approx(2.0)
    assert composed_loss([1.0, 1.0], 1e-3, [0.0, 0.0]) == composed_loss([1.0, 1.0], 1e-3)


def test_a_ledger_of_e_and_delta_shows_both_sums_and_says_what_they_promise(gaussian):
    kept = fm.read_ledger(gaussian)
    report = read(gaussian, 0.01, 3)
    assert not report.pure and report.checked and report.wrong == []
    for account in report.accounts:
        assert account.total_delta == pytest.approx(1e-4 * account.releases)
        assert account.total == pytest.approx(kept.column("privacy_sold")[account.owner].as_py())
        assert 0 < account.composed <= account.total
    shown = CliRunner().invoke(app, ["privacy", "ledger", str(gaussian)])
    assert shown.exit_code == 0 and "sum of delta" in shown.stdout and "none" in shown.stdout
    assert "The promise of these gradients is (e, delta) and not e" in " ".join(
        shown.stdout.split()
    )


def test_a_ledger_that_forgets_deltas_is_wrong(gaussian, tmp_path):
    as_an_earlier_version(gaussian, tmp_path)
    table = fm.read_ledger(gaussian)
    at = table.column_names.index("delta_sold")
    none = pa.array([0.0] * len(table))
    pq.write_table(table.set_column(at, "delta_sold", none), tmp_path / "ledger.parquet")
    assert len(read(tmp_path, 1e-6, 1).wrong) == len(releases(gaussian))
    pq.write_table(table.drop_columns(["delta_sold"]), tmp_path / "ledger.parquet")
    assert read(tmp_path, 1e-6, 1).wrong == [], "former versions did not write the column"


def test_a_pure_ledger_looks_as_before(liars):
    shown = CliRunner().invoke(app, ["privacy", "ledger", str(liars)])
    assert shown.exit_code == 0 and read(liars, 1e-6, 1).pure
    assert "sum of delta" not in shown.stdout and "promise" not in shown.stdout
