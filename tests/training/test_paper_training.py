"""The preset `paper` is appendix A: held against a slow and obvious one, option by option."""

from dataclasses import replace

import pytest
import torch

from flmarket_sim import training
from flmarket_sim.auctions.learned.level_outcome import outcome_of
from flmarket_sim.errors import InputError
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.training.multipliers import raise_augmented
from flmarket_sim.training.regretnet_training import RegretNetTrainer
from flmarket_sim.training.training_misreports import ascended_misreports, misreport_utility
from tests.training.appendix_a import AppendixA

MARKET = build_scenario(
    {
        "perturbation": {"name": "laplace"},
        "aggregation": {"error": "coordinate"},
        "data": {"name": "synthetic", "records": 3000},
        "owners": {"count": 40},
        "market": {"bidders": 3},
    }
)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def trainer_of(mechanism, rule="opt-aggr", levels=None, **changes):
    few = {"markets": 6, "tries": 3, "steps_per_epoch": 4}
    settings = replace(training.preset("paper", mechanism), **(few | changes))
    return RegretNetTrainer(mechanism, MARKET, rule, settings, levels=levels)


@pytest.mark.parametrize(
    ("mechanism", "rule"),
    [
        ("regretnet", "opt-aggr"),
        ("m-regretnet", "opt-aggr"),
        ("dm-regretnet", "opt-aggr"),
        ("dm-regretnet", "convl-aggr"),
    ],
)
def test_loss_and_gradient_are_those_of_appendix_a(mechanism, rule):
    trainer = trainer_of(mechanism, rule, levels=1 if mechanism == "regretnet" else 3)
    trainer.step = 9  # in the third epoch, so that rho and 1 differ
    generator = torch.Generator().manual_seed(1)
    phi = {name: 1 + torch.rand(3, generator=generator) for name in trainer.memory["multipliers"]}
    trainer.memory["multipliers"] = phi
    types = trainer.batch()
    loss = trainer.loss(types)
    loss.total.backward()

    slow = AppendixA(
        trainer.network, types, trainer.levels, trainer.deterministic,
        tau=0.125, rule=rule, clip=MARKET.privacy.clip, ascents=3, gamma=0.1,
    )  # fmt: skip
    total, violations = slow.lagrangian(
        {name: v.tolist() for name, v in phi.items()}, {"regret": 3, "ir": 3, "determinism": 1}
    )
    total.backward()
    assert float(loss.total.detach()) == pytest.approx(float(total.detach()), rel=1e-5)
    assert set(loss.violations) == set(violations)
    for name, v in violations.items():
        assert loss.violations[name].tolist() == pytest.approx(
            [float(x.detach()) for x in v], rel=1e-5
        )
    assert max(float(x.detach()) for x in violations["regret"]) > 0, (
        "nobody gains: nothing was compared"
    )
    scale = max(float(slow.weights[name].grad.abs().max()) for name in slow.weights)
    for name, weight in trainer.network.named_parameters():
        expected = slow.weights[name].grad
        assert (weight.grad.double() - expected).abs().max() < 1e-5 * scale, name


def test_a_step_is_the_plain_one_and_adam_is_an_option():
    trainer = trainer_of("dm-regretnet", levels=2)
    before = [weight.detach().clone() for weight in trainer.network.parameters()]
    trainer.advance()
    for old, weight in zip(before, trainer.network.parameters(), strict=True):
        assert torch.allclose(weight, old - 1e-3 * weight.grad, atol=1e-7)
    adam = trainer_of("dm-regretnet", levels=2, optimiser="adam")
    adam.advance()
    largest = max(
        (weight - old).abs().max()
        for old, weight in zip(before, adam.network.parameters(), strict=True)
    )
    assert float(largest.detach()) == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize(
    "departure",
    [
        {"cost_floor": True},
        {"detach_cost": True},
        {"gain_cap": 0.01},
        {"size_lies": False},
        {"record_ascent": True},
        {"attack": "search"},
    ],
    ids=lambda departure: next(iter(departure)),
)
def test_every_departure_changes_the_slope(departure):
    slopes = []
    for changes in ({}, departure):
        trainer = trainer_of("m-regretnet", levels=4, **changes)
        with torch.no_grad():  # many sell next to nothing
            trainer.network.allocation_head[-1].bias.view(3, 5)[:, -1] += 4.0
        trainer.loss(trainer.batch()).total.backward()
        slopes.append(torch.cat([w.grad.flatten() for w in trainer.network.parameters()]))
    assert (slopes[0] - slopes[1]).abs().max() > 1e-6


def test_a_clipped_gradient_has_that_norm_and_the_papers_has_its_own():
    norms = []
    for clip in (None, 0.5):
        trainer = trainer_of("m-regretnet", gradient_clip=clip)
        trainer.advance()
        weights = trainer.network.parameters()
        norms.append(float(torch.cat([w.grad.flatten() for w in weights]).norm()))
    assert norms[0] > 0.6 and norms[1] == pytest.approx(0.5, rel=1e-4)


def test_the_sample_is_the_same_in_every_epoch_unless_profiles_are_fresh():
    def rates(step, **changes):
        trainer = trainer_of("regretnet", **changes)
        trainer.step = step
        return trainer.batch().rate

    assert (rates(1) == rates(5)).all() and (rates(1) != rates(2)).any()
    fresh = {"fresh_profiles": True}
    assert (rates(1, **fresh) == rates(1)).all() and (rates(1, **fresh) != rates(5, **fresh)).any()


def test_multipliers_rise_by_rho_times_the_violation_every_tenth_iteration():
    phi = {"regret": torch.ones(2), "determinism": torch.ones(2)}
    violation = torch.tensor([0.5, 0.0])
    for iteration in range(1, 21):
        epoch = (iteration - 1) // 10
        raise_augmented(phi, dict.fromkeys(phi, violation), iteration, epoch)
    assert phi["regret"].tolist() == [1 + 0.5 + 2 * 0.5, 1.0], "rho is 1, then 2"
    assert phi["determinism"].tolist() == [1 + 0.5 + 0.5, 1.0], "rho stays 1"
    trainer = trainer_of("regretnet")
    for _ in range(9):
        trainer.advance()
    assert (trainer.memory["multipliers"]["regret"] == 1).all()
    trainer.advance()
    assert trainer.memory["multipliers"]["regret"].max() > 1


def test_an_owner_who_sells_nothing_does_not_count_and_a_slope_that_is_no_number_moves_nothing():
    trainer = trainer_of("regretnet")
    gain = torch.tensor([[0.0, 3.0, 2.0]], requires_grad=True)
    cost = torch.tensor([[0.0, 0.0, 4.0]], requires_grad=True)
    ratio, counts = trainer._relative(gain, cost)
    assert ratio.tolist() == [[0, 0, 0.5]] and counts.tolist() == [[False, False, True]]
    ratio.sum().backward()
    assert torch.isfinite(gain.grad).all() and torch.isfinite(cost.grad).all()
    before = [weight.detach().clone() for weight in trainer.network.parameters()]
    trainer.descend(next(trainer.network.parameters()).sum() * float("nan"), None)
    after = trainer.network.parameters()
    assert all((old == new).all() for old, new in zip(before, after, strict=True))


@pytest.mark.parametrize("per_record", [True, False])
def test_an_ascent_lies_within_what_an_owner_has_and_gains(per_record):
    trainer = trainer_of("dm-regretnet", markets=60, levels=3)
    types, owner = trainer.batch(), torch.arange(60) % 3
    truth, rows = types.truthful(3), torch.arange(60)
    arguments = (trainer.network, types, truth, owner, 10, 0.1, True, 0.125)
    lie = ascended_misreports(*arguments, size_lies=True, per_record=per_record)
    assert (lie.data_size >= 1).all() and (lie.data_size <= types.data_size[rows, owner]).all()
    assert (lie.data_size < types.data_size[rows, owner]).any(), "some sizes are understated"
    assert (lie.privacy_budget >= 0).all()
    assert (lie.privacy_budget <= types.privacy_budget[rows, owner]).all()
    assert (lie.values >= 0).all() and (lie.values.diff(dim=1) >= 0).all()
    certified = ascended_misreports(*arguments, per_record=per_record)
    assert (certified.data_size == types.data_size[rows, owner]).all()


def test_a_longer_ascent_of_small_steps_gains_more():
    trainer = trainer_of("m-regretnet", markets=100)
    types, owner = trainer.batch(), torch.zeros(100, dtype=torch.long)
    truth, gains = types.truthful(8), []
    for steps in (0, 5, 20):
        lie = ascended_misreports(
            trainer.network, types, truth, owner, steps, 1e-3, False, 1.0, per_record=False
        )
        gains.append(float(trainer._lying(types, truth, owner, lie, 1.0).mean().detach()))
    outcome = outcome_of(trainer.network, truth, deterministic=False)
    honest = misreport_utility(
        types, owner, type(lie)(*(column[:, 0] for column in truth[:3])), outcome
    )
    assert gains[0] == pytest.approx(float(honest.mean().detach()), rel=1e-4)
    assert gains[0] < gains[1] < gains[2]


def test_the_papers_training_goes_on_where_it_was_stopped(tmp_path):
    settings = replace(
        training.preset("paper", "dm-regretnet"), markets=5, tries=2, steps=9, steps_per_epoch=3
    )

    def stop(step, *_):
        if step == 7:
            raise KeyboardInterrupt

    whole, broken = tmp_path / "whole.safetensors", tmp_path / "broken.safetensors"
    training.train("dm-regretnet", MARKET, "opt-aggr", whole, settings)
    with pytest.raises(KeyboardInterrupt):
        training.train("dm-regretnet", MARKET, "opt-aggr", broken, settings, progress=stop)
    training.train("dm-regretnet", MARKET, "opt-aggr", broken, settings)
    assert whole.read_bytes() == broken.read_bytes()


def test_training_by_the_papers_method_lowers_its_violations():
    trainer = trainer_of("regretnet", markets=32, tries=10, steps_per_epoch=5)
    rows = [trainer.advance() for _ in range(40)]
    assert rows[-1]["regret"] < 0.8 * rows[0]["regret"]


def test_the_papers_settings_are_the_papers():
    settings = training.preset("paper", "dm-regretnet")
    assert (settings.steps, settings.steps_per_epoch) == (50 * 100, 100)
    assert (settings.markets, settings.tries, settings.learning_rate) == (1024, 100, 1e-3)
    assert (settings.attack, settings.temperature) == ("ascent", (0.125, 0.125))
    departures = (
        settings.regret_target, settings.ir_target, settings.gain_cap, settings.gradient_clip,
        settings.cost_floor, settings.detach_cost, settings.fresh_profiles, settings.record_ascent,
        settings.falling_rate, not settings.size_lies, settings.optimiser != "descent",
    )  # fmt: skip
    assert not any(departures)


def test_a_setting_is_changed_by_name():
    settings = training.with_overrides(
        training.preset("paper", "regretnet"),
        ["gradient_clip=1.5", "fresh_profiles=true", "optimiser=adam", "temperature=[0.2, 0.1]"],
    )
    assert (settings.gradient_clip, settings.fresh_profiles) == (1.5, True)
    assert (settings.optimiser, settings.temperature) == ("adam", (0.2, 0.1))
    assert training.with_overrides(settings, ["gradient_clip=none"]).gradient_clip is None
    for wrong, message in (
        ("gradient_clp=1", "did you mean 'gradient_clip'"),
        ("gradient_clip", "NAME=VALUE"),
        ("steps=3", "NAME=VALUE"),
        ("markets=many", "markets='many'.*integer"),
        ("optimiser=lbfgs", "'descent' or 'adam'"),
    ):
        with pytest.raises(InputError, match=message):
            training.with_overrides(settings, [wrong])
