"""Bounds of networks over boxes of reports: no report of a box earns more on the deployed auction,
and a box that shrinks to a report is bounded by what that report earns."""

import numpy as np
import pytest
import torch

import flmarket_sim as fm
from flmarket_sim.auctions.learned.menu_network import MenuNetwork
from flmarket_sim.auctions.learned.paper_network import PaperNetwork
from flmarket_sim.auctions.learned.weight_files import Learned
from flmarket_sim.owners.valuation import FAMILIES
from flmarket_sim.strategy.certified.box_search import BoxEffort, largest_value
from flmarket_sim.strategy.certified.certified_gain import certified_gain
from flmarket_sim.strategy.certified.lying_owner import LyingOwner
from flmarket_sim.strategy.certified.network_bounds import bounds_of_network
from flmarket_sim.strategy.certified.report_boxes import reading_weights
from flmarket_sim.strategy.misreports import Misreports
from flmarket_sim.strategy.payoff import Payoff
from flmarket_sim.strategy.search import best_reports


def market(n, seed=0, families=FAMILIES):
    rng = np.random.default_rng(seed)
    truth = fm.Profiles(
        rng.choice(families, (1, n)), rng.uniform(0.5, 1.5, (1, n)),
        rng.uniform(0.5, 2.0, (1, n)), rng.integers(5, 100, (1, n)),
    )  # fmt: skip
    return truth, rng.uniform(0.3, 1.2, 1) * truth.total_value()


def with_network(name, network, deterministic):
    """The auction with a network of its own in place of the shipped weights."""
    auction = fm.auctions.create(name)
    auction.learned = Learned(network.eval(), name, deterministic)
    auction._level_count = network.levels
    auction._offers_menus = isinstance(network, MenuNetwork)
    auction.certified = ("data_size",) if auction._offers_menus else ()
    return auction


def liar(auction, truth, levels, money, index):
    return LyingOwner.of(truth, truth.bids(levels), money, 0, index, bool(auction.certified))


def random_network(kind, n, levels):
    torch.manual_seed(levels)
    network = MenuNetwork(levels, 16) if kind == "menu" else PaperNetwork(n, levels, 12)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return network


CASES = {
    "dm-regretnet, M = 8": lambda: (fm.auctions.create("dm-regretnet"), 4, 8),
    "dm-regretnet, one reported level": lambda: (fm.auctions.create("dm-regretnet"), 3, 1),
    "dm-regretnet, two reported levels": lambda: (fm.auctions.create("dm-regretnet"), 3, 2),
    "regretnet": lambda: (fm.auctions.create("regretnet"), 5, 8),
    "m-regretnet": lambda: (fm.auctions.create("m-regretnet"), 4, 8),
    "a menu for two": lambda: (
        with_network("dm-regretnet", random_network("menu", 2, 2), True), 2, 2,
    ),
    "menus for four": lambda: (
        with_network("dm-regretnet", random_network("menu", 4, 3), True), 4, 3,
    ),
    "menus for four, by lot": lambda: (
        with_network("m-regretnet", random_network("menu", 4, 3), False), 4, 6,
    ),
    "the paper's network for two": lambda: (
        with_network("regretnet", random_network("paper", 2, 1), False), 2, 1,
    ),
    "the paper's network for three": lambda: (
        with_network("m-regretnet", random_network("paper", 3, 2), False), 3, 2,
    ),
    "the paper's network, deterministic": lambda: (
        with_network("dm-regretnet", random_network("paper", 4, 3), True), 4, 3,
    ),
}  # fmt: skip


def reports_at(bounds, points, unit):
    """Reports of the owner at coordinates (N, D); `unit` (N,) is the money of log value 0."""
    boxes, owner = bounds.boxes, bounds.owner
    read = np.flatnonzero(reading_weights(owner.bids.levels, boxes.weights.shape[1]).any(axis=1))
    values = np.zeros((len(points), owner.bids.levels))
    values[:, read] = np.exp(points[:, : boxes.values]) * unit[:, None]
    return Misreports(
        np.maximum.accumulate(values, axis=1), np.exp(points[:, -2]), np.exp(points[:, -1])
    )


def earned(auction, truth, money, owner, bounds, points):
    """(N,) the true utility of the reports, on the deployed auction."""
    size = np.exp(points[:, -1])
    if isinstance(auction.learned.network, MenuNetwork):
        others = owner.bids.data_size[0, owner.others].sum()
        unit = owner.money * size / (size + others)
    else:
        unit = size
    payoff = Payoff(auction, truth, owner.bids, money, np.array([owner.index]))
    reports = reports_at(bounds, points, unit)
    at_most = np.minimum(reports.data_size, truth.data_size[0, owner.index])
    budget = np.minimum(reports.privacy_budget, truth.privacy_budget[0, owner.index])
    return payoff(Misreports(reports.values, budget, at_most).at((slice(None), None)))[:, 0]


def random_points(rng, bounds, low, high, count):
    points = rng.uniform(low, high, (count, len(low)))
    J = bounds.boxes.values
    values = np.clip(np.sort(points[:, :J], axis=1), low[:J], high[:J])
    points[:, :J] = np.minimum(np.maximum.accumulate(values, axis=1), high[:J])
    return points[(np.diff(points[:, :J], axis=1) >= 0).all(axis=1)]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("last", [False, True])  # the smallest owner or the largest
def test_no_report_of_a_box_earns_more_than_its_bound(name, last):
    auction, n, levels = CASES[name]()
    truth, money = market(n)
    order = truth.data_size[0].argsort()
    owner = liar(auction, truth, levels, money, order[0] if last else order[-1])
    bounds = bounds_of_network(auction, owner)
    rng = np.random.default_rng(2)
    low, high = bounds.whole()
    boxes, reports = [], []
    for center in random_points(rng, bounds, low, high, 4):
        for width in (2.0, 0.3, 0.02):
            box = np.maximum(center - width / 2, low), np.minimum(center + width / 2, high)
            points = random_points(rng, bounds, *box, 40)
            boxes.append(box)
            reports.append(points)
    bound = bounds(*(np.stack(end) for end in zip(*boxes, strict=True)))[0]
    utility = earned(auction, truth, money, owner, bounds, np.concatenate(reports))
    box_of = np.repeat(np.arange(len(boxes)), [len(points) for points in reports])
    assert (utility <= bound[box_of] + 1e-9 * money[0]).all()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("value", [0.0, 1e12])
def test_values_beyond_the_first_box_earn_no_more_than_its_ends(name, value):
    auction, n, levels = CASES[name]()
    truth, money = market(n)
    owner = liar(auction, truth, levels, money, 0)
    bounds = bounds_of_network(auction, owner)
    low, high = bounds.whole()
    J = bounds.boxes.values
    end = low if value == 0.0 else high
    payoff = Payoff(auction, truth, owner.bids, money, np.array([0]))
    budget, size = np.exp(np.random.default_rng(5).uniform(low[J:], high[J:], (20, 2))).T
    size = np.minimum(size, truth.data_size[0, 0])
    budget = np.minimum(budget, truth.privacy_budget[0, 0])
    reports = Misreports(np.full((20, levels), value * money[0]), budget, size)
    utility = payoff(reports.at((slice(None), None)))[:, 0]
    points = np.column_stack([np.tile(end[:J], (20, 1)), np.log(budget), np.log(size)])
    points[:, :J] = np.maximum.accumulate(points[:, :J], axis=1)
    assert (utility <= bounds(points - 1e-9, points + 1e-9)[0] + 1e-9 * money[0]).all()


@pytest.mark.parametrize("name", CASES)
def test_a_box_of_one_report_is_bounded_by_what_it_earns(name):
    auction, n, levels = CASES[name]()
    truth, money = market(n, seed=1, families=("linear", "quadratic", "exponential"))
    owner = liar(auction, truth, levels, money, truth.data_size[0].argmin())
    bounds = bounds_of_network(auction, owner)
    points = random_points(np.random.default_rng(3), bounds, *bounds.whole(), 60)
    utility = np.maximum(earned(auction, truth, money, owner, bounds, points), 0.0)
    bound = np.maximum(bounds(points, points)[0], 0.0)
    assert np.quantile((bound - utility) / money[0], 0.9) < 1e-2


def test_a_small_network_of_one_value_is_certified_within_five_per_cent():
    auction = with_network("regretnet", random_network("paper", 6, 1), False)
    auction.certified = ("data_size",)
    truth, money = market(6)
    bids = truth.bids(1)
    found = best_reports(auction, truth, bids, money, np.array([5]), effort="quick")
    owner = LyingOwner.of(truth, bids, money, 0, 5, True)
    bounds = bounds_of_network(auction, owner)
    cost, known = float(truth.value(truth.privacy_budget)[0, 5]), float(found.utility[0])
    best = largest_value(
        bounds, *bounds.whole(), known=known, tolerance=0.05 * cost, effort=BoxEffort(nodes=1_000)
    )
    assert known - 1e-9 * money[0] <= best.bound <= known + 0.051 * cost


def test_the_first_owner_is_certified_to_the_best_loss_on_her_curve():
    auction = with_network("dm-regretnet", random_network("menu", 4, 3), True)
    truth, money = market(4)
    first = truth.data_size[0].argmax()
    owner = liar(auction, truth, 3, money, first)
    budgets = np.linspace(1e-3, 1.0, 4_000) * truth.privacy_budget[0, first]
    values = np.zeros((len(budgets), 3))  # she gets her whole budget at any price
    size = np.full(len(budgets), truth.data_size[0, first])
    payoff = Payoff(auction, truth, owner.bids, money, np.array([first]))
    best = payoff(Misreports(values, budgets, size).at((slice(None), None))).max()
    proved = certified_gain(auction, truth, money, levels=3, effort=BoxEffort(nodes=200))
    gap = (proved.utility_bound[0, first] - max(best, 0.0)) / proved.cost[0, first]
    assert -1e-9 <= gap <= 2e-3


@pytest.mark.parametrize("name", ["menus for four", "menus for four, by lot"])
def test_thousands_of_reports_never_exceed_what_is_certified(name):
    auction, n, levels = CASES[name]()
    truth, money = market(n, seed=3)
    proved = certified_gain(auction, truth, money, levels=levels, effort=BoxEffort(nodes=100))
    rng = np.random.default_rng(4)
    for i in range(n):
        bounds = bounds_of_network(auction, liar(auction, truth, levels, money, i))
        points = random_points(rng, bounds, *bounds.whole(), 2_000)
        best = earned(auction, truth, money, bounds.owner, bounds, points).max()
        assert best <= proved.utility_bound[0, i] + 1e-9 * money[0]


@pytest.mark.parametrize("name", ["dm-regretnet", "m-regretnet"])
def test_two_owners_of_one_reported_level_are_certified_to_a_tenth(name):
    auction = fm.auctions.create(name)
    truth, money = market(2, seed=2)
    found = fm.strategy.probe(auction, truth, money, levels=1, effort="quick")
    effort = BoxEffort(nodes=3_000)
    proved = certified_gain(
        auction, truth, money, levels=1, effort=effort, known=found.best_utility
    )
    assert (proved.relative_gain - found.relative_gain).max() <= 0.1


def test_more_nodes_never_loosen_a_bound():
    auction = fm.auctions.create("dm-regretnet")
    truth, money = market(2)
    few, many = (
        certified_gain(auction, truth, money, levels=1, effort=BoxEffort(nodes=nodes))
        for nodes in (50, 300)
    )
    assert (many.utility_bound <= few.utility_bound + 1e-12).all()
