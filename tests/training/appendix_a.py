"""Appendix A of the paper, market by market and owner by owner: slow, obvious, in double precision.

It shares nothing with the training but the network's weights, the true types and the aggregation
rules, which have tests of their own. Bids are lists (unit valuations, privacy budget, data size).
"""

import torch

from flmarket_sim.plugins.registry import aggregation


class AppendixA:
    """The Lagrangian C of a network on some profiles."""

    def __init__(self, network, types, levels, deterministic, tau, rule, clip, ascents, gamma):
        self.weights = {
            name: p.detach().double().requires_grad_(True) for name, p in network.named_parameters()
        }
        self.types = types._replace(**{k: v.double() for k, v in types._asdict().items()})
        self.markets, self.n = types.rate.shape
        self.levels, self.deterministic, self.tau = levels, deterministic, tau
        self.rule, self.clip, self.ascents, self.gamma = rule, clip, ascents, gamma

    def lagrangian(self, phi, rho):
        """C and its violations: lists of n numbers by name."""
        gains = [[] for _ in range(self.n)]
        shortfalls = [[] for _ in range(self.n)]
        spreads = [[] for _ in range(self.n)]
        objective = 0.0
        for k in range(self.markets):
            truth = [self.true_bid(k, i) for i in range(self.n)]
            z, payment = self.outcome(k, truth)
            losses = []
            for i in range(self.n):
                cost = self.cost(k, i, truth[i], z[i])
                utility = payment[i] - cost
                lie = self.misreport(k, i, truth)
                gain = self.utility(k, i, lie, truth) - utility
                self.note(gains[i], gain, cost)
                self.note(shortfalls[i], -utility, cost)
                even = 1 / (self.levels + 1)
                distance = sum((z[i][m] - even) ** 2 for m in range(self.levels + 1))
                spreads[i].append(self.levels / (self.levels + 1) - distance)
                losses.append(
                    sum(z[i][m] * m / self.levels for m in range(self.levels + 1)) * truth[i][1]
                )
            sizes = [bid[2] for bid in truth]
            if self.deterministic:
                objective = objective + self.error_bound(losses, sizes) / self.markets
            else:
                privacy = sum(size / sum(sizes) * e for size, e in zip(sizes, losses, strict=True))
                objective = objective - privacy / (self.markets * self.n)
        violations = {"regret": gains, "ir": shortfalls}
        if self.deterministic:
            violations["determinism"] = spreads
        means = {
            name: [sum(terms) / max(len(terms), 1) for terms in owners]
            for name, owners in violations.items()
        }
        total = self.n * objective
        for name, v in means.items():
            total = total + sum(phi[name][i] * v[i] for i in range(self.n))
            total = total + rho[name] / 2 * sum(v) ** 2
        return total, means

    @staticmethod
    def note(terms, gain, cost):
        """Adds max(0, gain) / cost, unless it is not finite."""
        if float(cost.detach()) > 0:
            terms.append(torch.clamp(gain, min=0.0) / cost)

    def true_bid(self, k, i):
        budget, size = self.types.privacy_budget[k, i], self.types.data_size[k, i]
        values = [
            self.unit_value(k, i, budget * m / self.levels) for m in range(1, self.levels + 1)
        ]
        return [torch.stack(values), budget, size]

    def unit_value(self, k, i, loss):
        """The true value of a privacy loss on one record (paper, section VI).

        The slope of the root at 0, which is infinite, is left out.
        """
        basic = {
            0: lambda e: 2 * e,
            1: lambda e: e**2,
            2: lambda e: 2 * torch.sqrt(e) if e > 0 else 0 * e,
            3: lambda e: torch.exp(e) - 1,
        }
        return self.types.rate[k, i] * basic[int(self.types.family[k, i])](loss)

    def cost(self, k, i, bid, z):
        """The true value of what the bid sells: at her bid's levels, on its records."""
        return sum(
            z[m] * self.unit_value(k, i, bid[1] * m / self.levels) * bid[2]
            for m in range(1, self.levels + 1)
        )

    def utility(self, k, i, bid, truth):
        z, payment = self.outcome(k, [bid if j == i else truth[j] for j in range(self.n)])
        return payment[i] - self.cost(k, i, bid, z[i])

    def misreport(self, k, i, truth):
        """J steps of size gamma up the slope of utility; budget and size are not overstated."""
        values, budget, size = (part.detach().clone() for part in truth[i])
        for _ in range(self.ascents):
            bid = [part.detach().requires_grad_(True) for part in (values, budget, size)]
            slopes = torch.autograd.grad(self.utility(k, i, bid, truth), bid)
            values, budget, size = (
                part.detach() + self.gamma * slope for part, slope in zip(bid, slopes, strict=True)
            )
            for m in range(self.levels):
                values[m] = max(values[m], values[m - 1] if m else torch.zeros(()).double())
            budget = min(max(budget, torch.zeros(()).double()), truth[i][1])
            size = min(max(size, torch.ones(()).double()), truth[i][2])
        return [values.detach(), budget.detach(), size.detach()]

    def outcome(self, k, bids):
        """Chances [i][m] (z' of deterministic nets, z of others), and payments."""
        money = self.types.budget[k]
        records = sum(bid[2] for bid in bids)
        prices = [*(v for bid in bids for v in bid[0]), money / records]
        budgets, sizes = [bid[1] for bid in bids], [bid[2] for bid in bids]
        prices, budgets, sizes = (self.normalised(group) for group in (prices, budgets, sizes))
        vector = []
        for i in range(self.n):
            vector += prices[i * self.levels : (i + 1) * self.levels]
            vector += [budgets[i], sizes[i]]
        vector = torch.stack([*vector, prices[-1]])
        logits = self.head("allocation_head", vector).view(self.n, self.levels + 1)
        z = []
        for i in range(self.n):
            probability = torch.softmax(torch.cat([logits[i][-1:], logits[i][:-1]]), 0)
            z.append(
                torch.softmax(probability / self.tau, 0) if self.deterministic else probability
            )
        fractions = torch.softmax(self.head("payment_head", vector), 0)
        return z, [fractions[i] * money for i in range(self.n)]

    @staticmethod
    def normalised(group):
        """Less the mean, over the range; equal extremes share the slope of the range."""
        counted = torch.stack(group[:-1])
        width = counted.amax() - counted.amin()
        return [(x - sum(counted) / len(counted)) / width for x in group]

    def head(self, name, x):
        for layer in (0, 2, 4, 6):
            weight, bias = (self.weights[f"{name}.{layer}.{part}"] for part in ("weight", "bias"))
            x = weight @ x + bias
            x = x if layer == 6 else torch.tanh(x)
        return x

    def error_bound(self, losses, sizes):
        """Variance and squared bias under the rule's weights, which are held fixed."""
        e = torch.stack(losses).detach().numpy()[None]
        d = torch.stack(sizes).detach().numpy()[None]
        weights = aggregation.create(self.rule).weights(e, d, self.clip)[0]
        variance = sum(
            8 * (self.clip * float(w) / loss) ** 2 for w, loss in zip(weights, losses, strict=True)
        )
        shares = [size / sum(sizes) for size in sizes]
        bias = sum(abs(float(w) - s) for w, s in zip(weights, shares, strict=True))
        return variance + (self.clip * bias) ** 2
