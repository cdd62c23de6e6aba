"""Valuation families from elsewhere: used everywhere, and carried by name between processes."""

import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import ContractError, InputError, ScenarioError
from flmarket_sim.experiments.content import profile_contents
from flmarket_sim.owners import family_table, valuation
from flmarket_sim.owners.population import create_population
from flmarket_sim.owners.valuation_family import slope
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Streams
from flmarket_sim.strategy.probe_file import read_probe, write_probe
from flmarket_sim.training.seq_price_training import SeqPriceTrainer, seq_price_settings
from tests.support.paths import ROOT

POWER, OF_DATA = "power_valuation:Power", "power_valuation:PowerOfData"
NO_TORCH = """
import numpy as np

class Hidden:
    name = "hidden"

    def value(self, e):
        return {factor} * e

    def loss_for_money(self, money):
        return money / {factor}
"""


@pytest.fixture(autouse=True)
def importable(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.syspath_prepend(str(tmp_path))


def profiles(families=(POWER, "linear", OF_DATA, "step"), markets=4):
    rng = np.random.default_rng(0)
    shape = (markets, len(families))
    return fm.Profiles(
        np.broadcast_to(np.array(families), shape),
        rng.uniform(0.5, 1.5, shape),
        rng.uniform(0.5, 2.0, shape),
        rng.integers(1, 100, shape).astype(float),
    )


def test_values_are_those_of_the_family():
    truth = profiles()
    loss = 0.5 * truth.privacy_budget
    rate, size, eb = truth.rate, truth.data_size, truth.privacy_budget
    assert truth.value(loss)[:, 0] == pytest.approx((2 * rate * size * loss**1.5)[:, 0])
    assert truth.value(loss)[:, 2] == pytest.approx((2 * rate * np.sqrt(size) * loss**1.5)[:, 2])
    assert truth.value(loss)[:, 3] == pytest.approx((rate * size * eb)[:, 3])


def test_money_buys_back_the_loss():
    truth = profiles((POWER, OF_DATA))
    loss, columns = 0.5 * truth.privacy_budget, (truth.family, truth.rate, truth.data_size)
    money = truth.value(loss)
    assert valuation.loss_for_money(*columns, truth.privacy_budget, money) == pytest.approx(loss)


def test_a_slope_needs_no_formula():
    class OnlyValue:
        name = "only-value"

        def value(self, e):
            return 2.0 * e**1.5

        def loss_for_money(self, money):
            return np.cbrt((0.5 * money) ** 2)

    loss = np.geomspace(1e-4, 10.0, 30)
    assert slope(OnlyValue(), loss) == pytest.approx(3.0 * np.sqrt(loss), rel=1e-6)


def test_a_family_that_gives_another_shape_is_named():
    @registry.register("family")
    class Flat:
        name = "flat-sum"

        def value(self, e):
            return np.sum(e)

        def loss_for_money(self, money):
            return money

    truth = profiles(("flat-sum", "linear"))
    with pytest.raises(ContractError, match="valuation family 'flat-sum' must give one number"):
        truth.bids()


def test_pickled_profiles_carry_names_and_not_codes(tmp_path):
    truth = profiles()
    (tmp_path / "truth.pickle").write_bytes(
        pickle.dumps([truth, truth.types, _population(["linear", POWER])])
    )
    elsewhere = """
        import pickle, sys
        sys.path[:0] = [{examples!r}]
        from flmarket_sim.owners.family_table import family_codes, family_names
        family_codes([{other!r}])  # takes the code that the first process gave to another family
        truth, types, people = pickle.load(open({path!r}, "rb"))
        print(family_names(truth.family)[0].tolist(), family_names(types.family)[0].tolist(),
              sorted(set(family_names(people.family).tolist())), truth.total_value()[0])
    """
    code = textwrap.dedent(elsewhere).format(
        examples=str(ROOT / "examples"), other=OF_DATA, path=str(tmp_path / "truth.pickle")
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = [POWER, "linear", OF_DATA, "step"]
    expected = f"{names} {names} {['linear', POWER]} {truth.total_value()[0]}"
    assert said.stdout.strip() == expected


def _population(families):
    scenario = fm.load_scenario("quickstart", [f"owners.families={families}".replace("'", '"')])
    return create_population(scenario, Streams(0))


def test_keys_depend_on_names_and_on_the_source_of_a_family(tmp_path, monkeypatch):
    source = tmp_path / "hidden_valuation.py"
    source.write_text(NO_TORCH.format(factor=2.0))
    truth = profiles(("hidden_valuation:Hidden", "linear"))
    before = profile_contents(truth)
    monkeypatch.setattr(family_table, "_codes", dict.fromkeys(family_table.FAMILIES, 0))
    monkeypatch.setattr(family_table, "_families", {})
    for code, name in enumerate((*family_table.FAMILIES, POWER, "hidden_valuation:Hidden")):
        family_table._codes[name] = code  # other codes, as in another process
    same = profiles(("hidden_valuation:Hidden", "linear"))
    assert profile_contents(same) == before
    source.write_text(NO_TORCH.format(factor=3.0))
    assert profile_contents(same) != before


def test_the_log_and_the_owners_of_a_run_name_the_family(tmp_path):
    families = f'owners.families=["{POWER}", "linear"]'
    liars = f'owners.behaviours=[{{name = "pretend", share = 0.4, family = "{OF_DATA}"}}]'
    scenario = fm.load_scenario("quickstart", ["rounds=3", "model.name=none", families, liars])
    run = fm.run(scenario, tmp_path / "run")
    assert set(fm.read_owners(run.path).column("family").to_pylist()) == {POWER, "linear"}
    assert set(fm.read_events(run.path, "bid").column("family").to_pylist()) == {
        POWER, OF_DATA, "linear",
    }  # fmt: skip
    worth = "select b.*, o.rate as a from bid b join owners o on o.owner = b.sender"
    for bid in fm.sql(run.path, f"{worth} where b.behaviour is null").to_pylist():
        e, d = bid["privacy_budget"], bid["data_size"]
        power = 1.0 if bid["family"] == "linear" else 1.5
        assert bid["value"] == pytest.approx(2 * bid["a"] * d * e**power)


def test_a_probe_file_names_the_family(tmp_path):
    truth = profiles((POWER, OF_DATA, "linear"), markets=2)
    auction = registry.auctions.create("pay-as-bid")
    found = fm.strategy.probe(auction, truth, 0.6 * truth.total_value(), effort="quick")
    read, _ = read_probe(write_probe(found, tmp_path / "probe.parquet"))
    assert (read.truth.family == truth.family).all()
    assert found.gain.max() > 0


def test_the_first_best_buys_from_any_family():
    truth = profiles((POWER, OF_DATA, "linear"), markets=3)
    budget = 0.5 * truth.total_value()
    best = fm.auctions.first_best(truth, budget)
    assert (best.spending <= budget * (1 + 1e-9)).all() and (best.privacy_loss[:, 0] > 0).any()


def test_a_learned_auction_trains_with_a_family_that_has_a_torch_form():
    scenario = fm.load_scenario("quickstart", [f'owners.families=["{POWER}", "{OF_DATA}"]'])
    trainer = SeqPriceTrainer([scenario], "opt-aggr", seq_price_settings("fast"))
    trainer.settings = type(trainer.settings)(markets=16, steps=2)
    assert np.isfinite(trainer.advance()["objective"])


def test_training_refuses_a_family_without_a_torch_form(tmp_path):
    (tmp_path / "untrainable.py").write_text(NO_TORCH.format(factor=2.0))
    scenario = fm.load_scenario("quickstart", ['owners.families=["untrainable:Hidden"]'])
    with pytest.raises(InputError, match=r"'untrainable:Hidden': it has no .torch_value"):
        SeqPriceTrainer([scenario], "opt-aggr", seq_price_settings("fast"))


def test_a_budget_that_a_family_cannot_value_is_refused(tmp_path):
    (tmp_path / "steep.py").write_text(NO_TORCH.format(factor="np.inf"))
    with pytest.raises(ScenarioError, match="is worth inf by the valuation family 'steep:Hidden'"):
        fm.load_scenario("quickstart", ['owners.families=["steep:Hidden"]'])


def test_an_owner_pretends_only_families_that_exist():
    with pytest.raises(ScenarioError, match="unknown valuation family 'squared'"):
        fm.load_scenario(
            "quickstart", ['owners.behaviours=[{name="pretend", share=0.1, family="squared"}]']
        )
