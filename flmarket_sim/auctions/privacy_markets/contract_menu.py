"""A contract menu: for each type of owner a privacy loss and a reward, made for a known prior."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from flmarket_sim.auctions.auction import Floats
from flmarket_sim.auctions.privacy_markets.menus_in_turn import SellsFromMenus
from flmarket_sim.errors import InputError

POWERS = {"linear": (2.0, 1.0), "quadratic": (1.0, 2.0), "sqrt": (2.0, 0.5)}  # h(e) = a e^b


class ContractMenu(SellsFromMenus):
    """Owners choose from contracts (e_k, R_k), one for each type t_1 < ... < t_K of a prior.

        R_K = t_K h(e_K),   R_k = R_(k+1) + t_k (h(e_k) - h(e_(k+1))),   e_1 > ... > e_K

    for a record: the dearest type gets her cost, and every cheaper type just enough to prefer her
    own contract. It is the screening menu of contract theory (Bolton and Dewatripont, "Contract
    Theory", 2005, chapter 2), as used for federated learning by Kang, Xiong, Niyato, Xie and Zhang
    (IEEE Internet of Things Journal, 2019) and by Tian, Chen, Liu, Xiong, Leung and Miao, "A
    Contract Theory based Incentive Mechanism for Federated Learning" (2021).

    `types` are the rates, all equally likely, that are thought possible, and `family` names h, the
    value of a loss on one record at rate 1. The losses e_k = s (K - k + 1) / K `largest` are evenly
    spaced. s is the largest number up to 1 at which the menu costs no more than the budget on
    average over the prior, if every owner can sell every loss. Contract theory promises that
    average only. Here menus are served in the order of the bids while the money lasts, because
    menus that fit even if everybody had the cheapest type would leave much of the money unspent.

    Menus depend on the budget and on certified sizes only, so no report changes one: the auction is
    truthful for every valuation, also for those that the prior does not know.
    """

    name = "contract-menu"
    formula = "R_K = t_K h(e_K), R_k = R_(k+1) + t_k (h(e_k) - h(e_(k+1)))"
    reference = (
        "Bolton and Dewatripont, Contract Theory (2005); Kang, Xiong, Niyato, Xie and Zhang (2019)"
    )
    guarantees = {"truthful": "any", "individually_rational": "any", "budget_feasible": "any"}
    certified = ("data_size",)

    def __init__(
        self,
        types: tuple[float, ...] = (0.75, 1.0, 1.25, 1.5),
        family: Literal["linear", "quadratic", "sqrt"] = "linear",
        largest: Annotated[float, Field(gt=0, le=1e100)] = 2.0,
    ) -> None:
        rates = np.asarray(types, np.float64)
        if not (
            rates.ndim == 1
            and 1 <= rates.size <= 1000
            and (np.isfinite(rates) & (rates > 0) & (rates <= 1e100)).all()
            and (np.diff(rates) > 0).all()
        ):
            raise InputError(
                "contract-menu: types must be 1 to 1000 rates, positive, at most 1e100 and rising; "
                f"got {list(types)}"
            )
        self.types, self.family, self.largest = types, family, largest

    def menu(self) -> tuple[Floats, Floats]:
        """(T,) losses and rewards for a record, the cheapest type first, where s is 1."""
        factor, power = POWERS[self.family]
        loss = self.largest * np.arange(len(self.types), 0, -1) / len(self.types)
        worth = factor * loss**power
        more = worth - np.append(worth[1:], 0.0)
        return loss, np.cumsum((np.asarray(self.types) * more)[::-1])[::-1]

    def menus(self, data_size: Floats, budget: Floats) -> tuple[Floats, Floats]:
        """Losses (K, 1, T) and payments (K, n, T) in markets of certified sizes (K, n)."""
        loss, reward = self.menu()
        money = np.minimum(budget / data_size.sum(axis=1) / reward.mean(), 1.0)  # h(s e) / h(e)
        scale = money ** (1.0 / POWERS[self.family][1])
        payment = data_size[..., None] * (money[:, None, None] * reward)
        return scale[:, None, None] * loss, payment
