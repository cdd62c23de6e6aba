"""Small trainings of seq-price: they learn, they repeat, they resume, and what they end in can be
sold with."""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import flmarket_sim as fm
from flmarket_sim import training
from flmarket_sim.auctions.learned import favourite, weight_files
from flmarket_sim.auctions.learned.weight_files import Learned
from flmarket_sim.errors import InputError
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.training import seq_price_training

MARKET = build_scenario(
    {
        "data": {"name": "synthetic", "records": 3000},
        "owners": {"count": 40},
        "market": {"bidders": 4},
    }
)
SMALL = replace(
    seq_price_training.seq_price_settings("fast"),
    markets=48,
    hidden=16,
    steps=30,
    steps_per_epoch=10,
)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("size", ["certified", "reported"])
def test_the_same_seed_gives_the_same_weights_and_a_broken_training_goes_on_to_them(tmp_path, size):
    whole, again, broken = (
        tmp_path / f"{name}.safetensors" for name in ("whole", "again", "broken")
    )
    for path in (whole, again):
        training.train("seq-price", MARKET, "opt-aggr", path, SMALL, size=size)

    def stop(step, total, metrics):
        if step == 17:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.train("seq-price", MARKET, "opt-aggr", broken, SMALL, size=size, progress=stop)
    assert not broken.exists()
    with pytest.raises(InputError, match="other settings"):
        training.train(
            "seq-price", MARKET, "opt-aggr", broken, replace(SMALL, markets=40), size=size
        )
    training.train("seq-price", MARKET, "opt-aggr", broken, SMALL, size=size)
    for path in (again, broken):
        assert path.read_bytes() == whole.read_bytes()
    assert pq.read_table(whole.with_suffix(".metrics.parquet")).column("step").to_pylist() == [
        10,
        20,
        30,
    ]


def test_training_lowers_the_error_of_the_deployed_mechanism(tmp_path):
    truth = fm.draw_profiles(MARKET, 300, seed=5)
    budget = np.random.default_rng(0).uniform(0.1, 2.0, 300) * truth.total_value()
    errors = []
    for steps in (1, 150):
        path = tmp_path / f"{steps}.safetensors"
        training.train(
            "seq-price", MARKET, "opt-aggr", path, replace(SMALL, markets=128, steps=steps)
        )
        loss = (
            fm.auctions.create("seq-price", weights=str(path))
            .decide(truth.bids(), budget, None)
            .privacy_loss
        )
        weights = fm.aggregation.create("opt-aggr").weights(loss, truth.data_size)
        errors.append(np.median(fm.aggregation.error_bound(weights, loss, truth.data_size)))
    assert errors[1] < 0.95 * errors[0]


def test_training_plays_what_is_deployed(tmp_path, monkeypatch):
    """The losses that training sees are those that the auction would sell on a very fine grid, up
    to single precision."""
    monkeypatch.setattr(favourite, "PARTS", 2048)
    path = tmp_path / "w.safetensors"
    trainer = seq_price_training.SeqPriceTrainer([MARKET], "opt-aggr", replace(SMALL, mixed=0.0))
    for _ in range(10):
        trainer.advance()
    weight_files.save(
        path, Learned(trainer.network, "seq-price", True, True, trainer.network.shape_facts)
    )
    types = trainer._draw()
    with torch.no_grad():
        kappa = torch.full((len(types.budget),), 8.0)
        seen, size, *_ = seq_price_training.play(trainer.network, types, kappa, 0.01)
    columns = [column.double().numpy() for column in types]
    truth = fm.Profiles(columns[0].astype(int), *columns[1:4])
    sequence = fm.auctions.create("seq-price", weights=str(path)).sequence(truth.bids(), columns[4])
    assert (np.sort(size.numpy())[:, ::-1] == size.numpy()).all()
    near = np.isclose(sequence.chosen_loss, seen.numpy(), rtol=1e-3, atol=1e-4)
    assert near.mean() > 0.98  # but for near ties


def test_a_general_training_takes_several_markets(tmp_path):
    other = build_scenario(
        {"data": {"name": "synthetic", "records": 3000}, "owners": {"count": 60}, "name": "other"}
    )
    settings = replace(
        seq_price_training.seq_price_settings("general"), markets=32, hidden=8, steps=6
    )
    learned = training.train(
        "seq-price", MARKET, "opt-aggr", tmp_path / "w.safetensors", settings, also=[other]
    )
    assert learned.facts["scenario"].endswith(", other")


def test_what_cannot_be_trained_is_refused():
    with pytest.raises(InputError, match="no preset"):
        seq_price_training.seq_price_settings("paper")
    with pytest.raises(InputError, match="knows the rules"):
        seq_price_training.SeqPriceTrainer([MARKET], "var-opt", SMALL)
    with pytest.raises(InputError, match="certified or reported"):
        seq_price_training.SeqPriceTrainer([MARKET], "opt-aggr", SMALL, size="guessed")


def test_the_slope_sees_jumps_and_not_only_what_is_near():
    """One owner's options tried one by one: what the error would be, and what the slope says."""
    rng = np.random.default_rng(4)
    markets, n, levels = 40, 6, 5
    size = torch.from_numpy(rng.lognormal(3, 1, (markets, n)).astype(np.float32))
    sold = rng.uniform(0.2, 2, (markets, n)) * rng.integers(0, 2, (markets, n))
    loss = torch.from_numpy(sold.astype(np.float32))
    loss[:, 0], loss[:, 3] = 1.0, 0.0  # the owner who is looked at sells nothing yet
    options = torch.from_numpy(rng.uniform(0.2, 2, (markets, levels)).astype(np.float32))
    nothing = (torch.zeros((markets, levels)), torch.zeros((markets, levels)))
    kappa = torch.full((markets,), 60.0)
    chance = torch.zeros((markets, levels), requires_grad=True)
    game = seq_price_training.Game(
        loss, size, torch.ones(markets), [nothing] * 3 + [(chance, options)] + [nothing] * 2
    )
    error, slope = seq_price_training.optimal_error(game, kappa)
    (said,) = torch.autograd.grad(slope.sum(), chance)
    weights = fm.aggregation.create("opt-aggr").weights
    scale = np.sqrt(8.0 / 60.0)

    def exact(losses):
        found = losses * scale
        return fm.aggregation.error_bound(weights(found, size.numpy()), found, size.numpy())

    assert error.detach().numpy() == pytest.approx(exact(loss.double().numpy()), rel=1e-5)
    without = loss.double().numpy()
    near = without.copy()
    near[:, 3] = 0.02
    derivative = (exact(near) - exact(without)) / 0.02
    for level in range(levels):
        other = without.copy()
        other[:, 3] = option = options[:, level].double().numpy()
        true, told = exact(other) - exact(without), said[:, level].double().numpy()
        assert (told <= 1e-6).all()  # who sells more never adds to the error
        assert np.corrcoef(true, told)[0, 1] > 0.7
        assert 0.6 < told.sum() / true.sum() < 2.5
        assert (derivative * option).sum() / true.sum() < 0.2  # a derivative misses the jump


def test_regimes_vary_and_menus_may_be_told_secrets_for_measurements():
    settings = replace(SMALL, kappas=(8.0, 1e4), reveal=("families", "budgets"))
    trainer = seq_price_training.SeqPriceTrainer([MARKET], "opt-aggr", settings)
    kappa = trainer._kappas(100)
    assert (kappa.diff() >= 0).all() and 2 <= len(set(kappa.tolist())) <= 4
    assert kappa.min() >= 8.0 and kappa.max() <= 1e4
    trainer.advance()
    assert trainer.network.secrets == 6 and trainer.facts["reveal"] == ["families", "budgets"]
