"""Question: what is the distance between seq-price and the second-best floor made of?

Prints the tables of docs/second-best.md, "What the rest is made of". Run it with

    python analysis/second_best.py secrets [--markets 60] [--market iid]   # secret families, by LP
    python analysis/second_best.py curves [--markets 16]       # price curves beside the best menus
    python analysis/second_best.py informed FILE...            # weights that know more (see below)

`secrets` bounds the error of mechanisms that are truthful in dominant strategies from below, once
with families that are public and once with families that are secret. For fixed functions u(t) <=
v(t) of all types t the error is at least 2 v - (v - u)^2 / 4 + sum_i h_i, which is a sum over
owners (docs/theory.md, section 4). Given the others' types, each owner's part is the linear program
of auctions/best_menu.py: types are families and rates, harm is h_i, and the price of money is that
of the floor.

`informed` compares weights that were trained with `--setting reveal=...` on the same markets: what
menus gain that know the family, or the privacy budget, of the owner they are for.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

import flmarket_sim as fm
from flmarket_sim.aggregation.error_bound import error_bound
from flmarket_sim.aggregation.market_error import COORDINATE_KAPPA, coordinate_error
from flmarket_sim.aggregation.noise_curve import NoiseCurve
from flmarket_sim.aggregation.opt_aggr import part_of_error, solve_with_duals
from flmarket_sim.aggregation.rule import data_shares
from flmarket_sim.auctions.best_menu import best_menu
from flmarket_sim.auctions.learned import weight_files
from flmarket_sim.auctions.penalised_purchase import penalised_purchase
from flmarket_sim.auctions.second_best import public_budget, second_best
from flmarket_sim.owners.population import draw_markets
from flmarket_sim.owners.rate_prior import rate_prior
from flmarket_sim.statistics import estimate
from flmarket_sim.training.seq_price_training import play, revealed
from flmarket_sim.training.type_space import Types

FAMILIES, RATES, LOSSES = 4, 8, 24
CURVES = 4000  # price curves that are tried for an owner
SEED = 4242


def sample(count: int, market: str = "iid") -> tuple[fm.Profiles, np.ndarray, np.ndarray, object]:
    """Markets, budget factors, public budgets and the prior."""
    scenario = fm.load_scenario(f"paper/{market}")
    prior = rate_prior(scenario)
    truth, factor = draw_markets(scenario, count, None, SEED)
    return truth, factor, public_budget(truth, factor, prior), prior


class Situation:
    """One owner of one market while the others' types are as they are."""

    def __init__(self, truth, k, i, price, prior, noise) -> None:
        rate = prior.quantile((np.arange(RATES) + 0.5) / RATES)
        self.family = np.repeat(np.arange(FAMILIES), RATES)
        self.rate = np.tile(rate, FAMILIES)
        types = len(self.rate)
        many = truth.take(np.full(types, k))
        family, true_rate = many.family.copy(), many.rate.copy()
        family[:, i], true_rate[:, i] = self.family, self.rate
        virtual = true_rate + prior.rent(true_rate, np.zeros_like(true_rate))
        owners = fm.Profiles(family, virtual, many.privacy_budget, many.data_size)
        loss, _ = penalised_purchase(owners, np.full(types, price), noise, thorough=False)
        share = data_shares(many.data_size)
        _, self.u, self.v = solve_with_duals(loss**2 / COORDINATE_KAPPA, share)
        self.constant = 2.0 * self.v - 0.25 * (self.v - self.u) ** 2
        budget = many.privacy_budget[0, i]
        self.grid = budget * np.concatenate([[0.0], np.arange(1, LOSSES + 1) / LOSSES])
        alone = fm.Profiles(
            self.family[:, None],
            self.rate[:, None],
            np.full((types, 1), budget),
            np.full((types, 1), many.data_size[0, i]),
        )
        self.cost = alone.types.at((slice(None), [0])).value(self.grid[None])
        inverse = self.grid**2 / COORDINATE_KAPPA
        self.harm = part_of_error(inverse, self.u[:, None], self.v[:, None], share[0, i])
        self.chance = np.full(types, 1.0 / types)
        self.price = price

    def menu(self, families_are_secret: bool):
        same = self.family[:, None] == self.family
        return best_menu(
            self.chance,
            self.cost,
            self.harm,
            self.price,
            confusable=None if families_are_secret else same,
        )

    def best_curve(self, rng: np.random.Generator) -> float:
        """The least harm and payment of price curves of 12 knots, by a random search."""
        knots = np.linspace(0.0, self.grid[-1], 13)
        top = self.cost[:, -1].max()

        def value(rises: np.ndarray) -> float:
            curve = np.interp(self.grid, knots, np.concatenate([[0.0], np.cumsum(rises)]))
            utility = curve - self.cost
            place = len(curve) - 1 - utility[:, ::-1].argmax(axis=1)
            rows = np.arange(len(place))
            return float((self.chance * (self.harm[rows, place] + self.price * curve[place])).sum())

        best = rng.exponential(top / 24, 12)
        least, width = value(best), 1.0
        for trial in range(CURVES):
            if trial % 4 == 0:
                tried = best * np.exp(width * rng.normal(size=12))
            elif trial % 4 == 1:
                tried = best * np.exp(width * rng.normal())
            else:
                tried = best.copy()
                tried[rng.integers(12)] *= np.exp(2 * width * rng.normal())
            found = value(tried)
            if found < least:
                best, least = tried, found
            width = max(0.02, width * 0.999)
        return min(least, value(np.zeros(12)))


def secrets(count: int, curves: bool, market: str) -> None:
    """Prints the bound with public and with secret families, or curves beside menus."""
    truth, factor, budget, prior = sample(count, market)
    noise = NoiseCurve.of(coordinate_error(), 2.0)
    price = second_best(truth, budget, prior, holds="on average").price_of_money
    rng = np.random.default_rng(0)
    known, secret, more, menus, lines = [], [], [], [], []
    for k in range(count):
        public, private, constants = 0.0, 0.0, []
        for i in range(truth.shape[1]):
            one = Situation(truth, k, i, float(price[k]), prior, noise)
            constants.append(one.constant.mean())
            a, b = one.menu(False).value, one.menu(True).value
            public, private = public + a, private + b
            if curves:
                more.append(one.best_curve(rng))
                menus.append(b)
        rest = np.mean(constants) - price[k] * budget[k]
        known.append(rest + public)
        secret.append(rest + private)
        print(f"market {k}: factor {factor[k]:.2f}, {known[-1]:.3f} {secret[-1]:.3f}", flush=True)
    lines.append(f"| families public | {np.mean(known):.3f} |")
    lines.append(f"| families secret | {np.mean(secret):.3f} |")
    ratio = estimate(np.array(secret), truth.population, np.array(known))
    lines.append(f"| secret over public | {ratio} |")
    if curves:
        extra = (np.sum(more) - np.sum(menus)) / count
        lines.append(f"| price curves, more | {extra / np.mean(secret):.1%} |")
    print("\n".join(lines))


def informed(files: list[str], count: int) -> None:
    """Prints the mean error of weights on the same markets."""
    truth, _, budget, _ = sample(count)
    columns = (truth.family, truth.rate, truth.privacy_budget, truth.data_size, budget)
    types = Types(*(torch.from_numpy(np.asarray(column, np.float32)) for column in columns))
    kappa = torch.full((count,), COORDINATE_KAPPA)
    print("| weights | error bound |\n|---|---|")
    for file in files:
        learned = weight_files.load_safetensors(weight_files.Path(file))
        reveal = tuple(learned.facts.get("reveal", ()))
        with torch.no_grad():
            game = play(learned.network, types, kappa, 0.01, revealed(types, reveal))
        loss, size = (x.double().numpy() for x in (game.loss, game.data_size))
        weights = fm.aggregation.create("opt-aggr").weights(loss, size)
        found = error_bound(weights, loss, size)
        print(f"| {', '.join(reveal) or 'nothing'} | {found[np.isfinite(found)].mean():.3f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["secrets", "curves", "informed"])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--markets", type=int)
    parser.add_argument("--market", choices=["iid", "noniid"], default="iid")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.what == "informed":
        informed(options.files, options.markets or 2000)
    else:
        curves = options.what == "curves"
        secrets(options.markets or (16 if curves else 60), curves, options.market)
