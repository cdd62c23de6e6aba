"""Small versions of the trainings: they learn, they repeat, they resume."""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import flmarket_sim as fm
from flmarket_sim import training
from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.market_error import error_of_kappa
from flmarket_sim.aggregation.rule import weights_in
from flmarket_sim.auctions.learned.menu_network import KAPPAS
from flmarket_sim.errors import InputError
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.training.menu_training import NOT_SOLD, WORST, MenuTrainer, utility_of
from flmarket_sim.training.training_misreports import (
    MisreportTensors,
    random_misreports,
    with_misreport,
)
from flmarket_sim.training.type_space import TypeSampler

MARKET = build_scenario(
    {
        "data": {"name": "synthetic", "records": 3000},
        "owners": {"count": 40},
        "market": {"bidders": 4},
    }
)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def small(mechanism, **changes):
    settings = {"markets": 24, "tries": 5, "steps": 30, "steps_per_epoch": 10}
    return replace(training.preset("fast", mechanism), **(settings | changes))


@pytest.mark.parametrize("mechanism", ["regretnet", "m-regretnet", "dm-regretnet"])
def test_the_same_seed_gives_the_same_weights_and_a_broken_training_goes_on_to_them(
    tmp_path, mechanism
):
    whole, again, broken = (
        tmp_path / f"{name}.safetensors" for name in ("whole", "again", "broken")
    )
    for path in (whole, again):
        training.train(mechanism, MARKET, "opt-aggr", path, small(mechanism))

    def stop(step, total, metrics):
        if step == 17:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.train(mechanism, MARKET, "opt-aggr", broken, small(mechanism), progress=stop)
    assert not broken.exists()
    with pytest.raises(InputError, match="other settings"):
        training.train(mechanism, MARKET, "opt-aggr", broken, small(mechanism, tries=6))
    training.train(mechanism, MARKET, "opt-aggr", broken, small(mechanism))
    for path in (again, broken):
        assert path.read_bytes() == whole.read_bytes()
    assert pq.read_table(whole.with_suffix(".metrics.parquet")).column("step").to_pylist() == [
        10,
        20,
        30,
    ]


def test_training_lowers_the_error_and_holds_the_regret(tmp_path):
    settings = small("dm-regretnet", markets=48, steps=150, steps_per_epoch=15)
    training.train("dm-regretnet", MARKET, "opt-aggr", tmp_path / "w.safetensors", settings)
    history = pq.read_table(
        (tmp_path / "w.safetensors").with_suffix(".metrics.parquet")
    ).to_pylist()
    assert history[-1]["error"] < 0.8 * history[0]["error"] and history[-1]["regret"] < 0.1


def test_the_truth_as_a_lie_is_worth_what_the_truth_is():
    trainer = MenuTrainer(
        "dm-regretnet", [MARKET], "opt-aggr", training.preset("fast", "dm-regretnet")
    )
    types = trainer.samplers[0].draw(0, 50)
    truth = types.truthful(8)
    rows, owner = torch.arange(50), torch.arange(50) % 4
    honest = MisreportTensors(*(column[rows, owner] for column in truth[:3]))
    with torch.no_grad():
        menus = trainer.network(*with_misreport(truth, owner, honest))
    utility, cost = utility_of(menus, types, owner, honest)
    level = menus.level[rows, owner]
    for k in range(50):
        m, i = int(level[k]), int(owner[k])
        paid = float(menus.payment[k, i, m - 1]) if m else 0.0
        worth = float(truth.values[k, i, m - 1]) if m else 0.0
        assert float(cost[k]) == pytest.approx(worth, rel=1e-4)
        assert float(utility[k]) == pytest.approx(paid - worth, rel=1e-3, abs=1e-3)


def test_markets_of_a_training_have_every_regime_and_both_rules():
    trainer = MenuTrainer(
        "dm-regretnet", [MARKET], "opt-aggr", training.preset("fast", "dm-regretnet")
    )
    _, kappa, by_size = trainer.draw()
    low, high = KAPPAS
    assert float(kappa.min()) == low and float(kappa.max()) <= high
    paper, near = (kappa == 8.0), (kappa > 3000.0) & (kappa < 8000.0)
    assert 0.3 < float(paper.float().mean()) < 0.5 and 0.25 < float(near.float().mean()) < 0.5
    assert 0.25 < float(by_size.mean()) < 0.45


def test_the_objective_counts_the_error_of_the_markets_regime():
    """Against the error bound in numpy, market by market."""
    trainer = MenuTrainer(
        "dm-regretnet", [MARKET], "opt-aggr", training.preset("fast", "dm-regretnet")
    )
    types, kappa, by_size = trainer.draw()
    truth = types.truthful(8)._replace(kappa=kappa, by_size=by_size)
    menus = trainer.network(*truth)
    sold = (menus.share * types.privacy_budget).double().numpy()
    size = types.data_size.double().numpy()
    ratios = []
    for k in range(len(kappa)):
        error, row = error_of_kappa(float(kappa[k])), slice(k, k + 1)
        rule = fm.aggregation.create("convl-aggr" if by_size[k] else "opt-aggr")
        bought = sold[row] if by_size[k] else np.where(sold[row] > 0, sold[row], NOT_SOLD)
        bounds = []
        for loss, how in (
            (bought, rule),
            (types.privacy_budget[row].double().numpy(), fm.aggregation.create("opt-aggr")),
        ):
            weights = weights_in(how, loss, size[row], error)
            bounds.append(error_bound_in(error, weights, loss, size[row]).total[0])
        ratios.append(min(bounds[0] / bounds[1], WORST))
    _, reported = trainer._objective(types, truth, menus)
    assert float(reported) == pytest.approx(np.mean(ratios), rel=1e-4)


def test_lies_stay_within_what_an_owner_has():
    types = TypeSampler(MARKET, 0).draw(0, 500)
    owner = torch.zeros(500, dtype=torch.long)
    lie = random_misreports(types, owner, 8, torch.Generator().manual_seed(0))
    assert (lie.privacy_budget <= types.privacy_budget[:, 0]).all() and (
        lie.data_size <= types.data_size[:, 0]
    ).all()
    assert (lie.data_size >= 1).all() and (lie.values.diff(dim=1) >= 0).all()


def test_types_are_worth_what_numpy_says():
    types = TypeSampler(MARKET, 0).draw(3, 20)
    truth = fm.Profiles(
        *(
            column.double().numpy() if k else column.numpy().astype("int8")
            for k, column in enumerate(types[:4])
        )
    )
    assert types.truthful(8).values.numpy() == pytest.approx(truth.bids(8).values, rel=1e-5)


def test_what_cannot_be_trained_is_refused(tmp_path):
    for mechanism, rule, message in (
        ("all-in", "opt-aggr", "cannot be trained"),
        ("regretnet", "var-opt", "knows the rules"),
    ):
        with pytest.raises(InputError, match=message):
            MenuTrainer(mechanism, [MARKET], rule, training.preset("fast", "regretnet"))
    with pytest.raises(InputError, match="no preset"):
        training.preset("slow", "regretnet")
