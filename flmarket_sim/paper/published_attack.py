"""The paper's regret as its authors' code measures it, the same with its faults mended, and luck.

as published  100 gradient steps from the truth on all parts of the report, in raw units. The last
              iterate counts. Only payments, and the cost's dependence on the reported budget and
              records, are attacked: the drawn (or most probable) level carries no gradient. After
              each step the reported valuations are made monotone along the wrong axis: owner i of
              a market asks at least what owners 1 to i - 1 of their own misreports ask, so most
              misreports are garbled before they are scored (docs/theory.md, section 3).
axis mended   the same, with valuations that are monotone over the levels of each owner
corrected     steps along a smooth choice of levels and expected utilities, for a record; the best
              of several iterates counts, by expected utilities of the auction as it is deployed
luck          lotteries only: what the metric calls regret when nobody misreports

As published, with the axis mended and luck compare one draw of the truth with one draw of the
misreport. Their means over all such pairs of draws are computed here, which have the same
expectation and less noise. They and `drawn_shortfall` divide by the expected cost of what is sold,
however small that is, as the authors do; `corrected` divides as the probe does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.play import measured_against
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.threads import one_torch_thread

if TYPE_CHECKING:
    from torch import Tensor

    from flmarket_sim.paper.misreport_ascent import LiarsMarket

Floats = NDArray[np.float64]
TEMPERATURE = 0.05
BEST_OF = (0.03, 0.1, 0.3, 1.0)  # the corrected attack compares iterates after these shares
CHUNK = 250  # markets that ascend together


@dataclass(frozen=True)
class Attack:
    """Misreports of each owner in each market, each in a copy of the market.

    `rate` and `steps` are the paper's gamma and J. Results have the shape (K, n).
    """

    auction: Any
    truth: Profiles
    budget: Floats
    steps: int = 100
    rate: float = 0.1

    def as_published(self, seed: int = 0) -> Floats:
        """Gain / cost by the authors' procedure; `seed` draws the lots of the ascent."""
        from flmarket_sim.paper.misreport_ascent import OWNERS

        return self._by_draws(OWNERS, seed)

    def axis_mended(self, seed: int = 0) -> Floats:
        """The same with valuations that are monotone over the levels."""
        from flmarket_sim.paper.misreport_ascent import LEVELS

        return self._by_draws(LEVELS, seed)

    def corrected(self) -> Floats:
        """Gain / cost of the best of several iterates, by expected utilities."""
        from flmarket_sim.paper.misreport_ascent import LEVELS

        stops = {max(1, round(self.steps * share)) for share in BEST_OF}

        def best(market: LiarsMarket) -> Tensor:
            import torch

            honest = torch.zeros_like(market.honest.data_size, dtype=torch.float64)
            with torch.no_grad():
                chance, payment = market.truthful_outcome()
                honest += (chance * (payment - market.costs(market.honest))).sum(-1)
            found = honest.clone()
            ascent = market.ascent(
                self.steps, self.rate, LEVELS, temperature=TEMPERATURE, relative=True
            )
            for step, lie in enumerate(ascent, 1):
                if step in stops:
                    with torch.no_grad():
                        found = torch.maximum(found, market.utility(lie, None, None).double())
            return found - honest

        return self._of_markets(best) / measured_against(self.truth, self._cost())

    def luck(self) -> Floats:
        """The gain of a luckier second draw of the same truthful bids, over cost."""

        def lucky(market: LiarsMarket) -> Tensor:
            chance, payment = market.truthful_outcome()
            surplus = payment - market.costs(market.honest)
            return mean_gain_of_draws(surplus, chance, surplus, chance)

        return self._of_markets(lucky) / self._paper_cost()

    def drawn_shortfall(self) -> Floats:
        """How far a draw pays less than the value of what was sold, over expected cost."""

        def short(market: LiarsMarket) -> Tensor:
            chance, payment = market.truthful_outcome()
            return (chance * (market.costs(market.honest) - payment).clamp(min=0)).sum(-1)

        return self._of_markets(short) / self._paper_cost()

    def _by_draws(self, monotone_over: int, seed: int) -> Floats:
        import torch

        lots = torch.Generator().manual_seed(seed)

        def gain(market: LiarsMarket) -> Tensor:
            *_, lie = market.ascent(self.steps, self.rate, monotone_over, lots)
            with torch.no_grad():
                chance, payment = market.truthful_outcome()
                honest = payment - market.costs(market.honest)
                lying_chance, lying_payment = market.lying_outcome(lie)
                lying = lying_payment - market.costs(lie)
                return mean_gain_of_draws(lying, lying_chance, honest, chance)

        return self._of_markets(gain) / self._paper_cost()

    def _of_markets(self, measured: Callable[[LiarsMarket], Tensor]) -> Floats:
        """(K, n) from a function of some markets at a time."""
        with one_torch_thread():
            parts = [measured(market).double().numpy() for market in self._markets()]
        return np.concatenate(parts)

    def _markets(self) -> Iterator[LiarsMarket]:
        from flmarket_sim.paper.misreport_ascent import LiarsMarket

        for begin in range(0, len(self.budget), CHUNK):
            rows = slice(begin, begin + CHUNK)
            yield LiarsMarket(
                self.auction.learned, self.truth.take(rows), self.budget[rows], self.auction.by_size
            )

    def _cost(self) -> Floats:
        """(K, n) the expected cost of what is sold by the truth."""

        def cost(market: LiarsMarket) -> Tensor:
            return (market.truthful_outcome().chance * market.costs(market.honest)).sum(-1)

        return self._of_markets(cost)

    def _paper_cost(self) -> Floats:
        """The expected cost of what is sold, by which the paper divides.

        Where nothing is sold (the paper's weights always sell), it is the probe's least divisor.
        """
        cost = self._cost()
        return np.where(cost > 0, cost, measured_against(self.truth, cost))


def mean_gain_of_draws(
    lying: Tensor, lying_chance: Tensor, honest: Tensor, honest_chance: Tensor
) -> Tensor:
    """(K, n) mean of max(0, lying utility - honest utility) over independent draws of both.

    All arguments are (K, n, M + 1): the utility of each level, and its chance.
    """
    gain = (lying.double()[..., :, None] - honest.double()[..., None, :]).clamp(min=0)
    both = lying_chance.double()[..., :, None] * honest_chance.double()[..., None, :]
    return (gain * both).sum((-2, -1))
