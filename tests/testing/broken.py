"""One sound mechanism, and for every check one that is broken on purpose in one way."""

import numpy as np

from flmarket_sim.auctions import Outcome, create
from flmarket_sim.auctions.learned.seq_price import SeqPrice
from flmarket_sim.owners.family_table import FAMILIES, family_of
from flmarket_sim.owners.stated_valuation import TABLE


class EqualOffers:
    """Every owner is offered the same share of the money for her whole budget.

    Sound for single-minded owners.
    """

    name = "equal-offers"
    guarantees = {
        "truthful": "single-minded",
        "individually_rational": "any",
        "budget_feasible": "any",
        "monotone": "any",
        "anonymous": "any",
    }

    def decide(self, bids, budget, rng):
        return self.sell(bids, self.offers(bids, budget))

    def offers(self, bids, budget):
        return np.broadcast_to(budget[:, None] / bids.shape[1], bids.shape)

    def sell(self, bids, offer):
        sells = offer >= bids.full_value
        return Outcome(np.where(sells, bids.privacy_budget, 0.0), np.where(sells, offer, 0.0))


class Lottery(EqualOffers):
    """Equal offers to a random half; says its chances truly. Sound."""

    name = "lottery"

    def decide(self, bids, budget, rng):
        whole, asked = super().decide(bids, budget, rng), rng.random(bids.shape) < 0.5
        return Outcome(whole.privacy_loss * asked, whole.payment * asked)


class LotteryWithExpected(Lottery):
    """Says its chances, truly."""

    name = "lottery with expected"
    chance = 0.5

    def expected(self, bids, budget):
        whole = EqualOffers.decide(self, bids, budget, None)
        sold = self.chance * (whole.privacy_loss > 0)
        return np.stack([1 - sold, sold], axis=2), np.stack(
            [np.zeros(bids.shape), whole.payment], axis=2
        )


class WrongShape(EqualOffers):
    name = "wrong shape"

    def decide(self, bids, budget, rng):
        outcome = super().decide(bids, budget, rng)
        return Outcome(outcome.privacy_loss[:, :1], outcome.payment)


class NoOutcome(EqualOffers):
    name = "no outcome"

    def decide(self, bids, budget, rng):
        return None


class SinglePrecision(EqualOffers):
    name = "single precision"

    def decide(self, bids, budget, rng):
        outcome = super().decide(bids, budget, rng)
        return Outcome(outcome.privacy_loss.astype(np.float32), outcome.payment)


class Charges(EqualOffers):
    """Takes money from whoever loses."""

    name = "charges"

    def decide(self, bids, budget, rng):
        outcome = super().decide(bids, budget, rng)
        return Outcome(outcome.privacy_loss, np.where(outcome.payment > 0, outcome.payment, -1.0))


class SellsTooMuch(EqualOffers):
    name = "sells too much"

    def decide(self, bids, budget, rng):
        outcome = super().decide(bids, budget, rng)
        return Outcome(1.1 * outcome.privacy_loss, outcome.payment)


class Crashes(EqualOffers):
    """Cannot decide bids of one level."""

    name = "crashes"

    def decide(self, bids, budget, rng):
        bids.values[:, :, 1]
        return super().decide(bids, budget, rng)


class Meddles(EqualOffers):
    """Sorts the bids in place."""

    name = "meddles"

    def decide(self, bids, budget, rng):
        outcome = super().decide(bids, budget, rng)
        bids.data_size.sort(axis=1)
        return outcome


class Vague(EqualOffers):
    name = "vague"
    guarantees = {"truthful": "mostly"}


class OwnDice(EqualOffers):
    """Rolls dice of its own, which no seed controls."""

    name = "own dice"
    dice = np.random.default_rng(1)

    def offers(self, bids, budget):
        return super().offers(bids, budget) * self.dice.uniform(0.5, 1.0, bids.shape)


class Remembers(EqualOffers):
    """Pays half from the second call on."""

    name = "remembers"
    calls = 0

    def offers(self, bids, budget):
        self.calls += 1
        return super().offers(bids, budget) / min(self.calls, 2)


class ThirstyDice(EqualOffers):
    """Draws a number for each seller only."""

    name = "thirsty dice"

    def decide(self, bids, budget, rng):
        outcome = super().decide(bids, budget, rng)
        rng.random(int((outcome.privacy_loss > 0).sum()))
        return outcome


class Neighbourly(EqualOffers):
    """Lets the poorest of the buyers set the offers of all markets."""

    name = "neighbourly"

    def offers(self, bids, budget):
        return super().offers(bids, np.broadcast_to(budget.min(), budget.shape))


class WrongExpected(LotteryWithExpected):
    """Sells half of the time and says sixty percent."""

    name = "wrong expected"
    chance = 0.6


class Overspends(EqualOffers):
    name = "overspends"

    def offers(self, bids, budget):
        return 2.0 * super().offers(bids, budget)


class RarelyOverspends(Lottery):
    """Pays twice the money, one time in fifty."""

    name = "rarely overspends"

    def decide(self, bids, budget, rng):
        sure = EqualOffers.decide(self, bids, budget, rng)
        return Outcome(
            sure.privacy_loss, sure.payment * np.where(rng.random(bids.shape) < 0.02, 2.0, 1.0)
        )


class Underpays(EqualOffers):
    """Buys from everybody who asks for no more than twice her offer."""

    name = "underpays"

    def sell(self, bids, offer):
        sells = 2.0 * offer >= bids.full_value
        return Outcome(np.where(sells, bids.privacy_budget, 0.0), np.where(sells, offer, 0.0))


class Snob(EqualOffers):
    """Does not buy from those who ask for too little."""

    name = "snob"

    def sell(self, bids, offer):
        sells = (offer >= bids.full_value) & (bids.full_value >= 0.1 * offer)
        return Outcome(np.where(sells, bids.privacy_budget, 0.0), np.where(sells, offer, 0.0))


class FirstServed(EqualOffers):
    """Offers more to those who come first."""

    name = "first served"

    def offers(self, bids, budget):
        weight = np.arange(bids.shape[1], 0, -1.0)
        return budget[:, None] * weight / weight.sum()


class FirstDrawn(Lottery):
    """A lottery in which who comes first is asked more often."""

    name = "first drawn"

    def decide(self, bids, budget, rng):
        whole, lots = EqualOffers.decide(self, bids, budget, rng), rng.random(bids.shape)
        asked = lots < np.linspace(0.9, 0.2, bids.shape[1])
        return Outcome(whole.privacy_loss * asked, whole.payment * asked)


class BoastfulPayAsBid:
    """Pays what is asked, and calls that truthful."""

    name = "boastful"
    guarantees = {
        "truthful": "single-minded",
        "individually_rational": "any",
        "budget_feasible": "any",
    }

    def decide(self, bids, budget, rng):
        return create("pay-as-bid").decide(bids, budget, rng)


class TooProud(EqualOffers):
    """Sound for single-minded owners, and says that it is for everybody."""

    name = "too proud"
    guarantees = EqualOffers.guarantees | {"truthful": "any"}


class GreedyLottery(Lottery):
    """A lottery whose winners get what they ask for."""

    name = "greedy lottery"

    def decide(self, bids, budget, rng):
        outcome = super().decide(bids, budget, rng)
        return Outcome(
            outcome.privacy_loss, np.where(outcome.privacy_loss > 0, bids.full_value, 0.0)
        )


class RoundsUp(SeqPrice):
    """seq-price as it was: the menu is a whole curve, and an owner of no built-in family is read as
    her table, rounded up between levels. So the levels of her report decide what she can get."""

    name = "rounds up"

    def __init__(self):
        self.name = SeqPrice.name  # weights are looked up by it
        super().__init__()
        del self.name

    def choice(self, reading, rows, offer):
        claim = reading.of_owner(rows, offer.owner)
        eb, knots = claim.privacy_budget[:, None], offer.privacy_loss
        left = np.append(0.0, knots[:-1])
        below = np.pad(offer.payment[:, :-1], ((0, 0), (1, 0)))
        slope = (offer.payment - below) / (knots - left)
        best = np.zeros((len(rows), 3))  # utility, loss, payment

        def consider(who, loss, paid, value):
            place = (np.arange(len(rows)), np.argmax(paid - value, axis=1))
            utility = (paid - value)[place]
            better = who & (utility > best[:, 0])
            best[better] = np.stack([utility, loss[place], paid[place]], axis=1)[better]

        for code in range(len(FAMILIES)):  # the best point of every straight piece
            loss = np.minimum(knots, eb)
            with np.errstate(divide="ignore", invalid="ignore"):
                per_scale = slope / claim.stated.scale[:, None]
                if FAMILIES[code] == "quadratic":
                    loss = np.clip(np.nan_to_num(0.5 * per_scale), left, loss)
                if FAMILIES[code] == "exponential":
                    loss = np.clip(np.nan_to_num(np.log(per_scale)), left, loss)
            value = claim.stated.scale[:, None] * family_of(code).value(loss)
            paid = np.where(left < eb, below + slope * (loss - left), -np.inf)
            consider(claim.stated.family == code, loss, paid, value)
        levels = claim.values.shape[1]
        loss = eb * (np.arange(1, levels + 1) / levels)
        piece = np.minimum(np.searchsorted(knots, loss), len(knots) - 1)
        within = np.minimum(loss, knots[-1]) - left[piece]
        paid = np.take_along_axis(below, piece, 1) + np.take_along_axis(slope, piece, 1) * within
        unknown = (claim.stated.family == TABLE) | (claim.stated.family >= len(FAMILIES))
        consider(unknown, loss, paid, claim.values)
        return best[:, 1], best[:, 2], claim.data_size


BROKEN = {  # mechanism -> the one property that must be refuted
    WrongShape: "contract",
    NoOutcome: "contract",
    SinglePrecision: "contract",
    Charges: "contract",
    SellsTooMuch: "contract",
    Crashes: "contract",
    Meddles: "contract",
    Vague: "contract",
    OwnDice: "deterministic",
    Remembers: "deterministic",
    ThirstyDice: "draws",
    Neighbourly: "batch",
    WrongExpected: "expected",
    Overspends: "budget_feasible",
    RarelyOverspends: "budget_feasible",
    Underpays: "individually_rational",
    BoastfulPayAsBid: "truthful",
    TooProud: "truthful",
    GreedyLottery: "truthful",
    RoundsUp: "truthful",
    Snob: "monotone",
    FirstServed: "anonymous",
    FirstDrawn: "anonymous",
}
