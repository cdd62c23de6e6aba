"""The authors' procedure for regret does what a slow and obvious one does, bug included."""

import functools

import numpy as np
import pytest
import torch

import flmarket_sim as fm
from flmarket_sim.auctions.learned import weight_files
from flmarket_sim.auctions.learned.paper_network import PaperNetwork
from flmarket_sim.auctions.learned.weight_files import Learned
from flmarket_sim.owners import valuation
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.paper.guarantees import PAPER
from flmarket_sim.paper.misreport_ascent import LEVELS, OWNERS, LiarsMarket
from flmarket_sim.paper.paper_market import PaperMarket
from flmarket_sim.paper.published_attack import Attack, mean_gain_of_draws
from flmarket_sim.scenario.part import Plugin
from flmarket_sim.statistics import estimate
from tests.support.paths import ROOT
from tests.support.published_weights import published_weights

N, M, STEP = 3, 2, 0.1
FAMILIES = ("linear", "quadratic", "sqrt", "exponential")


@pytest.fixture(scope="module")
def tiny():
    """Two markets of three owners, and a network of five hidden units."""
    rng = np.random.default_rng(3)
    truth = Profiles(
        rng.choice(FAMILIES, (2, N)), rng.uniform(0.5, 1.5, (2, N)), rng.uniform(0.5, 2, (2, N)),
        np.array([[2.0, 1.0, 4.0], [1.0, 3.0, 2.0]]),
    )  # fmt: skip
    torch.manual_seed(5)
    return truth, 0.7 * truth.total_value(), PaperNetwork(N, M, hidden=5)


def unit_value(family, rate, loss):
    """What a loss on one record is worth, family by family."""
    name = valuation.FAMILIES[family]
    if name == "linear":
        return rate * 2 * loss
    if name == "quadratic":
        return rate * loss**2
    if name == "sqrt":
        return rate * 2 * loss**0.5
    return rate * (torch.exp(loss) - 1)


def outcome_by_hand(network, reports, money):
    """Chances [owner][level], "nothing" first, and payments [owner], from lists of reports."""

    def scaled(group):
        counted = group[:-1]
        low, high = min(counted), max(counted)
        return [(x - sum(counted) / len(counted)) / (high - low) for x in group]

    records = sum(size for _, _, size in reports)
    prices = scaled([v for values, _, _ in reports for v in values] + [money / records])
    budgets, sizes = scaled([e for _, e, _ in reports]), scaled([d for _, _, d in reports])
    line = []
    for i in range(N):
        line += [*prices[i * M : (i + 1) * M], budgets[i], sizes[i]]
    x = torch.stack([*line, prices[-1]])

    def through(head):
        y = x
        for layer in head:
            weight = getattr(layer, "weight", None)
            y = (
                torch.tanh(y)
                if weight is None
                else weight.double().detach() @ y + layer.bias.double().detach()
            )
        return y

    logits = through(network.allocation_head).reshape(N, M + 1)
    chances = []
    for i in range(N):
        each = torch.softmax(logits[i], 0)
        chances.append([each[M], *each[:M]])
    return chances, torch.softmax(through(network.payment_head), 0)[:N] * money


def level_by_hand(chances, lot):
    """The most probable level but nothing, or the level of a lot."""
    if lot is None:
        return max(range(1, M + 1), key=lambda m: chances[m].item())
    total = 0.0
    for level, chance in enumerate(chances):
        total += chance.item()
        if lot < total:
            return level
    return M


def step_by_hand(network, truth, money, lots, axis):
    """Misreports [owner] of one market after one step of the attack."""
    true = []
    for i in range(N):
        eb = float(truth.privacy_budget[i])
        values = [
            unit_value(
                truth.family[i], truth.rate[i], torch.tensor(eb * m / M, dtype=torch.float64)
            )
            for m in range(1, M + 1)
        ]
        size = torch.tensor(float(truth.data_size[i]), dtype=torch.float64)
        true.append(([v.double() for v in values], torch.tensor(eb, dtype=torch.float64), size))
    moved = []
    for i in range(N):
        parts = [part.clone().requires_grad_(True) for part in (*true[i][0], *true[i][1:])]
        *values, eb, size = parts
        reports = [(values, eb, size) if j == i else true[j] for j in range(N)]
        chances, paid = outcome_by_hand(network, reports, money)
        level = level_by_hand(chances[i], None if lots is None else float(lots[i]))
        cost = unit_value(truth.family[i], truth.rate[i], eb * level / M) * size if level else 0.0
        slopes = torch.autograd.grad(paid[i] - cost, parts, allow_unused=True)
        moved.append(
            [
                part.item() + STEP * (0.0 if slope is None else slope.item())
                for part, slope in zip(parts, slopes, strict=True)
            ]
        )
    for i in range(N):
        *values, eb, size = (max(part, 0.0) for part in moved[i])
        moved[i] = [*values, min(eb, float(true[i][1])), max(min(size, float(true[i][2])), 1.0)]
    for i in range(N):
        for m in range(M):
            if axis == OWNERS and i > 0:  # the bug: the owner before her, and not the level before
                moved[i][m] = max(moved[i][m], moved[i - 1][m])
            if axis == LEVELS and m > 0:
                moved[i][m] = max(moved[i][m], moved[i][m - 1])
    return moved


@pytest.mark.parametrize("axis", [OWNERS, LEVELS])
@pytest.mark.parametrize("deterministic", [True, False])
def test_a_step_is_the_step_of_plain_loops(tiny, deterministic, axis):
    truth, money, network = tiny
    learned = Learned(network, "m-regretnet", deterministic, keeps_zero=False)
    generator = torch.Generator().manual_seed(11)
    market = LiarsMarket(learned, truth, money)
    (lie,) = market.ascent(1, STEP, axis, lots=generator)
    lots = torch.rand((2, N), generator=torch.Generator().manual_seed(11))
    for k in range(2):
        one = truth.types.at(k)
        expected = step_by_hand(network, one, money[k], None if deterministic else lots[k], axis)
        found = torch.cat(
            [lie.valuation[k], lie.privacy_budget[k][:, None], lie.data_size[k][:, None]], dim=1
        )
        np.testing.assert_allclose(found.numpy(), expected, rtol=2e-6, atol=1e-6)
    (other,) = market.ascent(1, STEP, OWNERS + LEVELS - axis, torch.Generator().manual_seed(11))
    assert not torch.allclose(lie.valuation, other.valuation)


def test_the_mean_over_draws_is_a_sum_over_pairs_of_levels():
    rng = np.random.default_rng(0)
    lying, honest = rng.normal(size=(2, 1, 1, M + 1))
    chances = rng.dirichlet(np.ones(M + 1), (2, 1, 1))
    expected = sum(
        chances[0, 0, 0, a] * chances[1, 0, 0, b] * max(0.0, lying[0, 0, a] - honest[0, 0, b])
        for a in range(M + 1)
        for b in range(M + 1)
    )
    tensors = (torch.from_numpy(x) for x in (lying, chances[0], honest, chances[1]))
    assert float(mean_gain_of_draws(*tensors)) == pytest.approx(expected, rel=1e-12)


@pytest.fixture(scope="module")
def markets():
    scenario = fm.load_scenario(
        ROOT / "scenarios/paper/iid.toml",
        ["data.name=synthetic", "data.records=4000", "owners.count=60"],
    )
    truth = fm.draw_profiles(scenario, 3, seed=5)
    return truth, 0.8 * truth.total_value()


@pytest.mark.parametrize("name", ["dm-regretnet", "m-regretnet", "regretnet"])
def test_all_measures_are_numbers_for_the_networks_that_are_trained_here(markets, name):
    attack = Attack(fm.auctions.create(name), *markets, steps=5)
    for found in (attack.as_published(), attack.axis_mended(), attack.corrected(), attack.luck()):
        assert found.shape == (3, 10) and np.isfinite(found).all() and (found >= 0).all()
    np.testing.assert_array_equal(attack.as_published(1), attack.as_published(1))


def test_a_metric_of_draws_finds_regret_where_nobody_lies(markets, tmp_path):
    truth, budget = markets
    torch.manual_seed(0)
    weight_files.save(tmp_path / "w.safetensors", Learned(PaperNetwork(10, 1), "regretnet", False))
    auction = fm.auctions.create("regretnet", weights=str(tmp_path / "w.safetensors"))
    chance, payment = auction.expected(truth.bids(1), budget)
    value, z = truth.value(truth.privacy_budget), chance[..., 1]
    # It differs by her value whether she sells, and only the luckier of two draws counts.
    expected = z * (1 - z) * value / (z * value)
    found = Attack(auction, truth, budget).luck()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    short = z * np.maximum(value - payment[..., 1], 0) / (z * value)
    np.testing.assert_allclose(
        Attack(auction, truth, budget).drawn_shortfall(), short, rtol=1e-4, atol=1e-6
    )
    assert found.max() > 0.5
    assert Attack(fm.auctions.create("dm-regretnet"), truth, budget).luck().max() == 0


PARTITIONS = {
    "IID": {"name": "iid", "sigma": 2.0, "minimum": 10},
    "non-IID": {"name": "dirichlet", "alpha": 0.5, "minimum": 10},
}


@functools.cache
def paper_markets(market, count, alpha=None):
    scenario = fm.load_scenario(ROOT / "scenarios/paper/iid.toml", ["seed=777"])
    partition = Plugin(**PARTITIONS[market] | ({} if alpha is None else {"alpha": alpha}))
    there = PaperMarket(name="m", partition=partition).of(scenario)
    truth, factor = fm.draw_markets(there, count, None, seed=778)
    return truth, factor * truth.total_value()


def published_auction(market, name, rule):
    names = {"IID": "iid", "non-IID": "niid"}
    of = PaperMarket(name=market, partition=Plugin(**PARTITIONS[market]), published=names[market])
    return of.auction(f"published-{name}", rule, str(published_weights()))


@pytest.mark.parametrize(("market", "name", "rule"), PAPER)
def test_the_published_weights_have_the_published_regret_by_the_authors_procedure(
    market, name, rule
):
    """Within 15 %, as far as so few markets tell."""
    auction = published_auction(market, name, rule)
    truth, budget = paper_markets(market, 60)
    found = estimate(Attack(auction, truth, budget).as_published().mean(1), truth.population)
    published, _ = PAPER[market, name, rule]
    assert found.low <= 1.15 * published and found.high >= 0.85 * published
    assert found.mean == pytest.approx(published, rel=0.4)


def test_a_mended_axis_multiplies_the_published_regret():
    auction = published_auction("IID", "dm-regretnet", "opt-aggr")
    truth, budget = paper_markets("IID", 60)
    attack = Attack(auction, truth, budget)
    assert attack.axis_mended().mean() > 3 * attack.as_published().mean()


def test_more_uneven_sizes_explain_the_published_ir_violations_of_the_non_iid_market():
    def shortfalls(alpha):
        truth, budget = paper_markets("non-IID", 1000, alpha)
        return {
            key: estimate(
                Attack(published_auction(*key), truth, budget).drawn_shortfall().mean(1),
                truth.population,
            )
            for key in PAPER
            if key[0] == "non-IID"
        }

    for key, found in shortfalls(0.2).items():
        assert found.low <= 1.1 * PAPER[key][1] and found.high >= 0.9 * PAPER[key][1]
    here = shortfalls(0.5)["non-IID", "dm-regretnet", "opt-aggr"]
    assert here.low > 1.1 * PAPER["non-IID", "dm-regretnet", "opt-aggr"][1]
