"""Hardened noise is as private as stated, never repeats, and is refused where a seed matters."""

import builtins

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError, ScenarioError
from flmarket_sim.eventlog.summary import summarise
from flmarket_sim.perturbation.duchi_l2 import sphere_radius
from flmarket_sim.privacy import hardened
from flmarket_sim.privacy.accounting import composed_loss
from flmarket_sim.scenario.model import Privacy, Scenario
from flmarket_sim.scenario.rules import HARDENED_PERTURBATIONS
from flmarket_sim.scenario.scenario_file import build_scenario, parse_scenario
from flmarket_sim.sweep.sweep_plan import parse_sweep
from tests.support.command_line import flmarket
from tests.support.paths import ROOT

HARD = '[privacy]\nnoise = "hardened"\n[perturbation]\nname = "laplace"\n'


@pytest.fixture
def opendp():
    return pytest.importorskip("opendp", reason="the extra [privacy] is not installed")


def test_opendp_proves_no_more_loss_than_is_sold(opendp):
    rng = np.random.default_rng(0)
    for loss, clip, dimension in zip(
        rng.uniform(0.01, 30, 40),
        10 ** rng.uniform(-3, 3, 40),
        rng.integers(1, 900, 40),
        strict=True,
    ):
        made, scale = hardened.measurement(int(dimension), float(loss), float(clip))
        assert made.map(2.0 * clip) <= loss
        assert 2 * clip / loss <= scale <= 2 * clip / loss * (1 + 1e-12)
        assert made.map(2.0 * clip * 1.01) > loss


def test_hardened_noise_is_laplace_noise_of_the_same_scale(opendp):
    noise = hardened.HardenedNoise("laplace", clip=1.5)
    drawn = np.concatenate([noise.release(np.full(400, 0.001), 0.5, 0, 0, 0) for _ in range(10)])
    assert np.abs(drawn).mean() == pytest.approx(6.0, rel=0.12)
    assert np.quantile(drawn, [0.25, 0.75]) == pytest.approx(
        [-6 * np.log(2), 6 * np.log(2)], rel=0.2
    )


def test_the_scenario_and_the_noise_know_the_same_perturbations():
    assert tuple(hardened.HARDENED) == HARDENED_PERTURBATIONS


@pytest.mark.parametrize("loss", [1e-6, 0.01, 0.5, 1.0, 2.0, 8.0, 30.0, 40.0, 500.0])
def test_opendp_proves_no_more_loss_for_the_coin_than_is_sold(opendp, loss):
    proven = hardened.coin(loss).map(1)
    assert proven <= loss
    assert proven >= min(loss * (1 - 1e-5), 35.0)  # as much as numbers of eight bytes allow


def test_all_that_a_gradient_decides_of_a_half_sphere_is_a_sign(opendp, monkeypatch):
    """With the same public randomness any two gradients leave as the same point or its opposite."""
    draw = np.random.default_rng
    monkeypatch.setattr(hardened.np.random, "default_rng", lambda: draw(7))
    rng = draw(0)
    gradients = [np.zeros(30), np.eye(30)[0], *(rng.normal(size=(40, 30)) / 9)]
    sent = [hardened.release_half_sphere(one, 1.0, 1.0) for one in gradients]
    signs = [np.array_equal(one, sent[0]) for one in sent]
    assert all(same or np.array_equal(one, -sent[0]) for one, same in zip(sent, signs, strict=True))
    assert len(set(signs)) == 2


@pytest.mark.parametrize("length", [0.6, 1.0])
def test_a_hardened_half_sphere_is_that_of_the_perturbation(opendp, length):
    gradient, loss, draws = np.array([length, 0.0, 0.0]), 1.0, 4000
    noise = hardened.HardenedNoise("duchi-l2", clip=1.0)
    sent = np.array([noise.release(gradient, loss, 0, 0, 0) for _ in range(draws)])
    radius = sphere_radius(np.array([loss]), 3, 1.0)[0]
    np.testing.assert_allclose(np.linalg.norm(sent, axis=1), radius, rtol=1e-12)
    spread = radius / np.sqrt(3 * draws)
    np.testing.assert_allclose(sent.mean(axis=0), gradient, atol=5 * spread)
    kept = 1 / (1 + np.exp(-loss))
    side = kept * (1 + length) / 2 + (1 - kept) * (1 - length) / 2
    assert (sent[:, 0] > 0).mean() == pytest.approx(side, abs=5 * 0.5 / np.sqrt(draws))


def test_a_hardened_run_is_another_one_each_time_and_says_so(opendp, tmp_path):
    small = [
        "rounds=1",
        "data.name=synthetic",
        "data.features=4",
        "data.classes=2",
        "owners.count=20",
    ]
    scenario = fm.load_scenario(ROOT / "scenarios/hardened.toml", small)
    runs = [fm.run(scenario, tmp_path / name) for name in "ab"]
    assert runs[0].info["repeatable"] is False and runs[0].info["versions"]["opendp"]
    assert summarise(runs[0].path)["repeatable"] is False
    errors = [fm.read_events(run.path, "delivery").column("true_error").to_pylist() for run in runs]
    assert errors[0] != errors[1]
    owners = [fm.read_owners(run.path) for run in runs]
    assert owners[0] == owners[1], "only the noise cannot be repeated"
    shown = flmarket(
        "run",
        "scenarios/hardened.toml",
        *(word for setting in small for word in ("--set", setting)),
        "--out",
        tmp_path / "c",
    )
    assert shown.returncode == 0 and "cannot be repeated" in shown.stdout, shown.stderr


def test_a_run_with_simulation_noise_says_that_it_can_be_repeated(market):
    path = market()
    assert fm.read_run(path)["repeatable"] is True and summarise(path)["repeatable"] is True


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (f"seed = 1\n{HARD}", 3, "a seed is given"),
        (f"seed = 0\n{HARD}", 3, "a seed is given"),
        (f"{HARD}[sweep]\nseeds = 2\n", 2, "a sweep compares"),
        (f'{HARD}[study]\nname = "rest-point"\n', 2, "a study compares"),
    ],
)
def test_what_asks_for_repetition_is_refused_with_its_line(text, line, why):
    with pytest.raises(
        ScenarioError, match=rf"x\.toml:{line}: privacy\.noise: .*cannot be repeated, but {why}"
    ):
        parse_scenario(text, "x.toml")


def test_seeds_by_other_ways_are_refused_too(tmp_path):
    with pytest.raises(ScenarioError, match="a seed is given"):
        parse_scenario(HARD, overrides=["seed=3"])
    with pytest.raises(ScenarioError, match="a seed is given"):
        Scenario(seed=3, privacy=Privacy(noise="hardened"))
    with pytest.raises(
        ScenarioError, match="a seed is given"
    ):  # as a resumed run would be made from its run.json
        build_scenario(
            {
                key: value
                for key, value in parse_scenario(HARD).as_dict().items()
                if key in ("seed", "privacy", "perturbation")
            }
        )
    with pytest.raises(InputError, match="cannot be repeated"):
        parse_sweep(f"{HARD}[sweep]\nseeds = 2\n")
    told = flmarket("run", "scenarios/hardened.toml", "--seed", "3", "--out", tmp_path / "run")
    assert (
        told.returncode == 2
        and "hardened.toml:" in told.stderr
        and "a seed is given" in told.stderr
    )
    assert not (tmp_path / "run").exists()


def test_a_sweep_over_noise_has_failed_rows_for_the_hardened_ones():
    plan = parse_sweep(
        '[sweep]\nseeds = 2\n[sweep.grid]\n"privacy.noise" = ["simulation", "hardened"]\n'
    )
    assert [run.scenario is None for run in plan.runs] == [False, False, True, True]
    assert "cannot be repeated" in plan.runs[2].problem


def test_the_hash_of_older_scenarios_has_not_moved():
    plain = Scenario()
    assert plain.digest() == parse_scenario('[privacy]\nnoise = "simulation"').digest()
    assert plain.digest() != parse_scenario(HARD).digest()


@pytest.mark.parametrize("package", ["opendp", "dp_accounting"])
def test_without_the_extra_one_is_told_what_to_install(package, monkeypatch, tmp_path):
    real = builtins.__import__

    def missing(name, *rest):
        if name.split(".")[0] == package:
            raise ImportError(f"No module named {package!r}")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    needs = {
        "opendp": lambda: fm.run(parse_scenario(HARD), tmp_path / "run"),
        "dp_accounting": lambda: composed_loss([1.0], 1e-6),
    }
    with pytest.raises(InputError, match=r"flmarket-sim\[privacy\]"):
        needs[package]()
    assert not (tmp_path / "run").exists(), "nothing is written before that is known"
