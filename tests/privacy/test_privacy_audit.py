"""The audit goes the way that gradients go in the market, and finds what is wrong there."""

import inspect
import json

import numpy as np
import pytest
from scipy.stats import beta, norm
from typer.testing import CliRunner

import flmarket_sim as fm
from flmarket_sim import privacy
from flmarket_sim.cli.app import app
from flmarket_sim.errors import InputError
from flmarket_sim.experiments.engine import results_of
from flmarket_sim.market.mail import Inbox
from flmarket_sim.market.messages import GradientMessage
from flmarket_sim.market.simulation import rounds_only
from flmarket_sim.perturbation.gaussian import delta_of_ratio
from flmarket_sim.perturbation.laplace import Laplace
from flmarket_sim.perturbation.priv_unit import best_cap
from flmarket_sim.privacy.loss_bounds import gaussian_bound, loss_of_distance, lower_bound
from flmarket_sim.privacy.privacy_audit import PrivacyClaim, audit_batches
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.studies.privacy_audit_tasks import audit_results, audit_tasks, count_hits
from tests.support.command_line import flmarket

LOSS, CLIP = 1.0, 0.5
PURE = [
    ("laplace", {}),
    ("priv-unit", {}),
    ("priv-unit", {"length": "unit"}),
    ("proj-unit", {}),
    ("proj-unit", {"size": 4}),
    ("duchi-l2", {}),
    ("duchi-linf", {}),
    ("piecewise", {}),
]


class AtTwiceTheLoss:
    """Another perturbation at twice the loss that is claimed: about half of its noise."""

    def __init__(self, inner):
        self.inner, self.name, self.domain = inner, "twice", inner.domain
        self.prepare, self.variance = inner.prepare, inner.variance
        self.worst_pair = inner.worst_pair

    def release(self, gradients, privacy_loss, rng, clip=1.0):
        return self.inner.release(gradients, 2 * np.asarray(privacy_loss), rng, clip)


class Plain:
    """A perturbation without what it says about its worst pair."""

    def __init__(self, inner):
        self.name, self.domain = inner.name, inner.domain
        self.prepare, self.release, self.variance = inner.prepare, inner.release, inner.variance


@pytest.mark.parametrize(("name", "options"), PURE)
@pytest.mark.parametrize("loss", [0.5, 1.0, 2.0])
def test_the_audit_passes_a_mechanism_and_comes_close_to_its_claim(name, options, loss):
    made = fm.perturbation.create(name, **options)
    result = privacy.audit(made, loss, clip=2.0, draws=50_000, one_by_one=50)
    assert result.passed and 0.89 * loss < result.lower_bound <= loss
    assert result.lower_bound == pytest.approx(result.reach, abs=0.05)


@pytest.mark.parametrize(("name", "options"), PURE)
def test_the_audit_catches_half_the_noise_with_ten_thousand_draws(name, options):
    made = fm.perturbation.create(name, **options)
    for loss in (0.5, 2.0):
        found = privacy.audit(AtTwiceTheLoss(made), loss, draws=10_000, one_by_one=0)
        assert not found.passed and found.lower_bound > 1.2 * loss


@pytest.mark.parametrize(("name", "options"), [*PURE[:3], *PURE[5:7]])
def test_a_search_comes_close_to_the_event_that_a_perturbation_names(name, options):
    made = Plain(fm.perturbation.create(name, **options))
    found = privacy.audit(made, 1.0, draws=50_000, one_by_one=50)
    assert found.passed and found.lower_bound > 0.8
    twice = Plain(AtTwiceTheLoss(fm.perturbation.create(name, **options)))
    assert not privacy.audit(twice, 1.0, draws=10_000, one_by_one=0).passed


@pytest.mark.parametrize("dimension", [2, 9])
def test_events_have_the_chances_that_are_written_beside_them(dimension):
    e, cap = 1.0, best_cap(np.array([1.0]), dimension + 1)
    p, q = float(cap.chance[0]), float(cap.mass[0])
    expected = {
        "laplace": (0.5, 0.5 * np.exp(-e)),
        "priv-unit": (p, q * (1 - p) / (1 - q)),
        "duchi-l2": (np.exp(e) / (np.exp(e) + 1), 1 / (np.exp(e) + 1)),
        "piecewise": (np.exp(0.5) / (np.exp(0.5) + 1), np.exp(-0.5) / (np.exp(0.5) + 1)),
    }
    for name, chances in expected.items():
        made, draws = fm.perturbation.create(name), 100_000
        batches = audit_batches(made, PrivacyClaim(e, dimension), draws, one_by_one=0)
        for first, chance in zip((True, False), chances, strict=True):
            hits = sum(batch.hits(made)[0] for batch in batches if batch.first is first)
            assert hits / draws == pytest.approx(chance, abs=5 * np.sqrt(0.25 / draws)), name


def test_an_audit_can_be_repeated_and_says_how_it_was_done():
    result = privacy.audit(Laplace(), 1.0, draws=5_000)
    assert result == privacy.audit(Laplace(), 1.0, 10, 1.0, 5_000, 0.999, 0)
    assert result != privacy.audit(Laplace(), 1.0, draws=5_000, seed=1)
    assert (result.claimed, result.draws, result.confidence) == (1.0, 5_000, 0.999)
    assert (result.market_draws, result.delta, result.gaussian_bound) == (2_000, 0.0, None)
    assert inspect.signature(privacy.audit).parameters["draws"].default == 100_000
    for wrong in ({"privacy_loss": 0.0}, {"privacy_loss": 1.0, "draws": 0}):
        with pytest.raises(InputError):
            privacy.audit(Laplace(), **wrong)


class Counted(Laplace):
    """A mechanism that hits exactly so often; a hit lies on the threshold itself."""

    def __init__(self, plus, minus):
        self.plus, self.minus = plus, minus

    def release(self, gradients, privacy_loss, rng, clip=1.0):
        sign = np.sign(gradients[0, 0])
        assert (np.abs(gradients).sum(axis=1) <= clip).all() and (gradients[:, 1:] == 0).all()
        hits = np.arange(len(gradients)) < (self.plus if sign > 0 else self.minus)
        return np.where(hits, clip, clip - 1e-9)[:, None] * np.eye(1, gradients.shape[1])


@pytest.mark.parametrize(
    ("plus", "minus"), [(70, 20), (100, 1), (100, 0), (3, 2), (0, 5), (0, 0), (100, 100), (20, 70)]
)
def test_the_audit_is_the_ratio_of_two_clopper_pearson_bounds(plus, minus):
    for confidence in (0.999, 0.9):
        risk = (1 - confidence) / 2
        least = beta.ppf(risk, plus, 101 - plus) if plus else 0.0
        most = beta.ppf(1 - risk, minus + 1, 100 - minus) if minus < 100 else 1.0
        expected = max(np.log(least / most), 0.0) if plus else 0.0
        made = Counted(plus, minus)
        found = privacy.audit(made, 1.0, 2, 3.0, 100, confidence, one_by_one=0)
        assert found.lower_bound == pytest.approx(expected, rel=1e-9)
        small = max(np.log((least - 0.01) / most), 0.0) if least > 0.01 else 0.0
        assert lower_bound(plus, minus, 100, confidence, 0.01) == pytest.approx(small)


def test_the_bounds_hold_as_often_as_they_say():
    rng = np.random.default_rng(0)
    likely, unlikely = rng.binomial(200, 0.5, 3000), rng.binomial(200, 0.5 * np.exp(-1.0), 3000)
    above = [lower_bound(a, b, 200, 0.9) > 1.0 for a, b in zip(likely, unlikely, strict=True)]
    assert 0 < np.mean(above) < 0.1


def test_a_chosen_event_refutes_no_sound_mechanism_more_often_than_the_confidence_allows():
    """The pilot picks what looks worst; the bound is from other draws."""
    made = Plain(Laplace())
    above = [
        not privacy.audit(made, 1.0, 2, draws=400, confidence=0.8, seed=seed, one_by_one=0).passed
        for seed in range(60)
    ]
    assert np.mean(above) < 0.2


def test_the_bound_for_gaussian_noise_inverts_its_formula():
    for distance in (0.1, 0.5, 3.0):
        loss = loss_of_distance(distance, 1e-5)
        assert delta_of_ratio(1 / distance, loss) == pytest.approx(1e-5, rel=1e-6)
    assert loss_of_distance(1e-6, 1e-5) == 0.0, "so near to each other they are within delta"
    draws, distance = 10**6, 0.5
    counts = [round(draws * norm.cdf(z)) for z in (0.5 * distance, -0.5 * distance)]
    bound = gaussian_bound(*counts, draws, 0.999, 1e-5)
    assert 0.95 * loss_of_distance(distance, 1e-5) < bound < loss_of_distance(distance, 1e-5)
    assert gaussian_bound(10, 10, 10, 0.9, 1e-5) == gaussian_bound(3, 5, 10, 0.9, 1e-5) == 0.0


def test_gaussian_noise_passes_at_its_delta_and_half_of_it_does_not():
    gaussian = fm.perturbation.create("gaussian")
    found = privacy.audit(gaussian, 1.0, draws=100_000, one_by_one=50)
    assert found.passed and found.delta == 1e-5
    assert 0 < found.lower_bound < found.gaussian_bound < 1
    assert found.gaussian_bound > 0.85
    half = AtTwiceTheLoss(gaussian)
    half.delta = gaussian.delta
    assert not privacy.audit(half, 1.0, draws=20_000, one_by_one=0).passed


def half_the_noise(gradients, unit, loss, clip):
    return gradients + unit * (clip / loss)[:, None]


def test_the_audit_goes_the_way_of_the_market(monkeypatch):
    assert privacy.audit(Laplace(), 1.0, draws=5000).passed
    leave = privacy.Release.leave

    def careless(release, row, owner, round_number, buyer):
        return 0.5 * leave(release, row, owner, round_number, buyer) + 0.5 * release.prepared[row]

    monkeypatch.setattr(privacy.Release, "leave", careless)
    found = privacy.audit(Laplace(), 1.0, draws=5000)
    assert not found.passed and found.lower_bound < 1.0 < found.market_bound


class Extreme:
    """A model whose every gradient is far beyond the threshold, along +e_1 or -e_1."""

    sign, dimension = 1.0, 2

    def __init__(self, features: int, classes: int) -> None:
        pass

    def initial(self):
        return np.zeros(2)

    def gradients(self, parameters, data, rows, sizes):
        return np.tile([self.sign * 7.0, 0.0], (len(sizes), 1))

    def evaluate(self, parameters, data):
        raise AssertionError("not evaluated here")


@pytest.fixture
def sold(monkeypatch):
    """First coordinates of all gradients that owners of a market with one-signed gradients send."""
    from flmarket_sim.market import buyer, simulation

    def run(sign, name):
        found, send = [], Inbox.send
        with monkeypatch.context() as patch:
            patch.setattr(Extreme, "sign", sign)
            patch.setattr(simulation, "create_model", lambda *_: Extreme(2, 2))
            patch.setattr(buyer.Buyer, "_evaluate", lambda *_: None)

            def spy(inbox, message, delay):
                if isinstance(message, GradientMessage):
                    found.append(message.gradient[0])
                send(inbox, message, delay)

            patch.setattr(Inbox, "send", spy)
            tables = {
                "market": {"bidders": 500, "levels": 1},
                "owners": {"count": 500, "privacy_budget": LOSS, "accept": "always"},
                "privacy": {"clip": CLIP},
                "perturbation": {"name": name},
                "budget": {"factor": 10.0},
                "data": {"name": "synthetic", "records": 10_000},
                "auction": {"name": "pay-as-bid"},
            }
            rounds_only(build_scenario({"rounds": 10} | tables))
        return np.array(found)

    return run


def bound_of_a_market(sold, name):
    up, down = sold(1.0, name), sold(-1.0, name)
    assert len(up) == len(down) == 5000
    return lower_bound(int((up >= CLIP).sum()), int((down >= CLIP).sum()), 5000, 0.999)


def test_a_real_market_loses_what_it_says_and_half_the_noise_is_caught_there(sold, monkeypatch):
    for name in ("laplace", "priv-unit"):
        assert 0.8 * LOSS < bound_of_a_market(sold, name) <= LOSS
    monkeypatch.setattr("flmarket_sim.perturbation.laplace.perturb", half_the_noise)
    assert bound_of_a_market(sold, "laplace") > LOSS


@pytest.mark.parametrize(("name", "options"), [("laplace", {}), ("proj-unit", {"size": 3})])
def test_tasks_of_the_engine_give_the_same_audits(name, options, monkeypatch):
    monkeypatch.setattr("flmarket_sim.privacy.privacy_audit.BATCH", 300)
    tasks = audit_tasks(name, options, [1.0, 2.0], PrivacyClaim(1.0, 5, seed=3), 500, 40)
    assert len(tasks) == len({task.key for task in tasks}) == 12
    results = audit_results(tasks, results_of(tasks, count_hits), 0.99)
    made = fm.perturbation.create(name, **options)
    assert results == [
        privacy.audit(made, loss, 5, draws=500, confidence=0.99, seed=3, one_by_one=40)
        for loss in (1.0, 2.0)
    ]


def test_hardened_noise_passes_and_half_of_it_does_not(monkeypatch):
    pytest.importorskip("opendp", reason="the extra [privacy] is not installed")
    found = privacy.audit(Laplace(), 1.0, 2, draws=1500, noise="hardened")
    assert found.passed and found.market_draws == found.draws == 1500
    from flmarket_sim.privacy import hardened

    honest = hardened.measurement
    monkeypatch.setattr(hardened, "measurement", lambda d, loss, clip: honest(d, 2 * loss, clip))
    assert not privacy.audit(Laplace(), 1.0, 2, draws=1500, noise="hardened").passed


def test_a_hardened_half_sphere_passes_and_a_coin_of_twice_the_loss_does_not(monkeypatch):
    pytest.importorskip("opendp", reason="the extra [privacy] is not installed")
    from flmarket_sim.privacy import hardened

    half_sphere = fm.perturbation.create("duchi-l2")
    found = privacy.audit(half_sphere, 1.0, 10, draws=1500, noise="hardened")
    assert found.passed and found.lower_bound > 0.6
    fair = hardened.coin
    monkeypatch.setattr(hardened, "coin", lambda loss: fair(2 * loss))
    assert not privacy.audit(half_sphere, 1.0, 10, draws=1500, noise="hardened").passed


def command(*arguments):
    return CliRunner().invoke(app, ["privacy", "audit", *arguments, "--workers", "1"])


def test_the_command_prints_bounds_beside_claims():
    told = flmarket(
        *("privacy", "audit", "--draws", "2000", "--epsilon", "1", "--epsilon", "3"),
        *("--json", "--workers", "1", "--one-by-one", "100"),
    )
    rows = json.loads(told.stdout)
    assert told.returncode == 0 and [row["claimed"] for row in rows] == [1.0, 3.0]
    assert all(
        0 < row["lower_bound"] <= row["claimed"] and row["reach"] < row["claimed"] for row in rows
    )
    wrong = flmarket("privacy", "audit", "--noise", "soft")
    assert wrong.returncode == 2 and "Traceback" not in wrong.stderr


def test_the_command_takes_any_perturbation_and_fits_the_window():
    options = ("--option", "delta=0.001", "--draws", "2000", "--one-by-one", "50")
    told = command("gaussian", *options)
    assert told.exit_code == 0 and "weaker than e alone" in " ".join(told.stdout.split())
    assert "if Gaussian" in told.stdout and max(map(len, told.stdout.splitlines())) <= 80
    named = command(
        "flmarket_sim.perturbation.priv_unit:PrivUnit", "--option", "length=unit",
        "--draws", "2000", "--one-by-one", "0", "--dimension", "4", "--json",
    )  # fmt: skip
    rows = json.loads(named.stdout)
    assert [row["options"] for row in rows] == 3 * [{"length": "unit"}]
    assert all(row["passed"] and row["dimension"] == 4 for row in rows)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["laplac"], "did you mean 'laplace'"),
        (["priv-unit", "--option", "length"], "`option` takes KEY=VALUE"),
        (["priv-unit", "--option", "length=long"], "length: Input should be 'kept' or 'unit'"),
        (["priv-unit", "--noise", "hardened"], "'laplace' and 'duchi-l2' only"),
        (["gaussian", "--option", "delta=0.7"], "delta must lie between"),
    ],
)
def test_a_wrong_audit_gets_one_paragraph(arguments, complaint):
    told = command(*arguments)
    assert told.exit_code != 0 and complaint in str(told.exception)
    assert isinstance(told.exception, InputError)


def test_the_command_fails_when_a_claim_is_refuted(monkeypatch):
    arguments = ["--draws", "2000", "--epsilon", "1"]
    assert command(*arguments).exit_code == 0
    monkeypatch.setattr("flmarket_sim.perturbation.laplace.perturb", half_the_noise)
    refuted = command(*arguments)
    assert refuted.exit_code == 1 and "REFUTED" in refuted.stdout
