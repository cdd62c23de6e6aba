"""The market as its authors run it: the baseline of `learning_run` and `scale`, newly written.

It works in the same way as their published code. Each round builds Problem 3 in its matrix form
over 2k variables and a cvxpylayers layer of it, and solves it once. It deep-copies the torch model
for every winner, differentiates each copy, and clips and perturbs the gradient. It evaluates the
whole test set through a DataLoader, or in one tensor with `loader=False`, which is faster than
their code.
"""

from __future__ import annotations

import copy

import cvxpy as cp
import numpy as np
import torch
from cvxpylayers.torch import CvxpyLayer
from torch.utils.data import DataLoader, TensorDataset

import flmarket_sim as fm
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.owners.population import choose_bidders, create_population, draw_money
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import Scenario


def aggregation_weights(loss: np.ndarray, size: np.ndarray, clip: float) -> torch.Tensor:
    """Problem 3 of the paper as a fresh differentiable layer, solved once."""
    k = len(loss)
    share = size / size.sum()
    root = np.zeros((2 * k, 2 * k))
    root[:k, :k] = np.diag(np.sqrt(8.0) * clip / loss)
    root[k:, k:] = clip / np.sqrt(k)
    eye = np.eye(k)
    both, matrix = cp.Variable(2 * k), cp.Parameter((2 * k, 2 * k))
    bounds = np.block([[eye, -eye], [-eye, -eye]]) @ both <= np.concatenate([share, -share])
    problem = cp.Problem(
        cp.Minimize(cp.sum_squares(matrix @ both)), [cp.sum(both[:k]) == 1, bounds]
    )
    (solution,) = CvxpyLayer(problem, parameters=[matrix], variables=[both])(torch.tensor(root))
    return solution[:k]


def run(
    scenario: Scenario, data: Dataset, loader: bool = True, model: torch.nn.Module | None = None
) -> float:
    """Runs all rounds of a scenario and returns the last accuracy; the default model is linear."""
    streams = Streams(scenario.seed)
    population = create_population(scenario, streams, data)
    auction = fm.auctions.create(scenario.auction.name)
    money = draw_money(streams, scenario.budget, 0, scenario.rounds)
    model = model or torch.nn.Linear(data.train_x.shape[1], len(data.classes))
    train_x, train_y = torch.from_numpy(data.train_x), torch.from_numpy(data.train_y)
    test = TensorDataset(torch.from_numpy(data.test_x), torch.from_numpy(data.test_y))
    clip, accuracy = scenario.privacy.clip, 0.0
    for number in range(scenario.rounds):
        owners = choose_bidders(streams, len(population), scenario.market.bidders, 0, number)
        truth = population.profiles(owners)
        outcome = auction.decide(
            truth.bids(), money[number] * truth.total_value(), np.random.default_rng(number)
        )
        winners = np.flatnonzero(outcome.privacy_loss[0])
        if not len(winners):
            continue
        loss = outcome.privacy_loss[0, winners]
        weights = aggregation_weights(loss, truth.data_size[0, winners], clip)
        step = [torch.zeros_like(p) for p in model.parameters()]
        for owner, e, weight in zip(owners[winners], loss, weights.tolist(), strict=True):
            local = copy.deepcopy(model)
            of_owner = population.rows[population.offsets[owner] : population.offsets[owner + 1]]
            torch.nn.functional.cross_entropy(
                local(train_x[of_owner]), train_y[of_owner]
            ).backward()
            torch.nn.utils.clip_grad_norm_(local.parameters(), clip, norm_type=1.0)
            noise = torch.distributions.Laplace(0.0, 2 * clip / float(e))
            for total, p in zip(step, local.parameters(), strict=True):
                total += weight * (p.grad + noise.sample(p.shape))
        with torch.no_grad():
            for p, gradient in zip(model.parameters(), step, strict=True):
                p -= scenario.model.learning_rate * gradient
            batches = DataLoader(test, batch_size=10_000) if loader else [test.tensors]
            accuracy = sum(int((model(x).argmax(dim=1) == y).sum()) for x, y in batches) / len(test)
    return accuracy
