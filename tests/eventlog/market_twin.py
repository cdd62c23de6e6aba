"""A slow, obvious twin of the market: works out delays, reports, auctions and gradients again.

What no event says comes from the scenario, from owners.parquet, and from the random streams. The
twin knows uniform delays, and the behaviours that are listed in `REPORTS`.
"""

import hashlib
import math
import struct
from collections import namedtuple
from functools import cached_property, wraps

import numpy as np

import flmarket_sim as fm
from flmarket_sim.eventlog import KINDS
from flmarket_sim.owners.family_table import family_codes
from flmarket_sim.owners.owner_types import OwnerTypes
from flmarket_sim.owners.population import create_population
from flmarket_sim.owners.stated_valuation import StatedValuations
from flmarket_sim.perturbation.scenario_error import scenario_error
from flmarket_sim.randomness import Purpose, Streams
from flmarket_sim.strategy.behaviours.behaviour import BehaviourReports, Transfers
from tests.learning.local_twin import local_changes

Key = namedtuple("Key", "round buyer")  # of a round: its number, and the name of its buyer
Step = namedtuple("Step", "row name asked answered menu decision sold")  # of a sale in turn
Draws = namedtuple(
    "Draws", "announcement bid allocation decision model gradient payment availability dropout"
)
TO_BUYER = 2**32 - 1
PATRON_FACTOR, GIFT = 1.2, 0.1
DISGUISE = 0.02


def remembered(method):
    """A method of the twin whose answers are kept."""

    @wraps(method)
    def answer(self, *question):
        known = self.memory.setdefault(method.__name__, {})
        if question not in known:
            known[question] = method(self, *question)
        return known[question]

    return answer


class Patron:
    """Asks 1.2 times her true values, and gives a tenth of her payment to the next patron."""

    name = "patron"

    def report(self, view):
        return BehaviourReports(
            view.values * PATRON_FACTOR,
            view.privacy_budget,
            view.data_size,
            family=view.truth.family[0],
            rate=view.truth.rate[0] * PATRON_FACTOR,
        )

    def share(self, feedback):
        owners = feedback.view.owners
        return Transfers(owners, np.roll(owners, -1), GIFT * feedback.payment)


def worth(family, rate, records, loss, step_cost):
    """Money that makes up for a privacy loss on some records, by valuation family."""
    return {
        "linear": 2 * rate * records * loss,
        "quadratic": rate * records * loss**2,
        "sqrt": 2 * rate * records * loss**0.5,
        "exponential": rate * records * np.expm1(loss),
        "step": step_cost if loss > 0 else 0.0,
    }[family]


class MarketTwin:
    """A run, and what follows from its log."""

    def __init__(self, scenario, path):
        self.scenario, self.streams, self.memory = scenario, Streams(scenario.seed), {}
        self.tables = {kind: fm.read_events(path, kind) for kind in KINDS}
        self.log = {kind: table.to_pylist() for kind, table in self.tables.items()}
        self.owners = fm.read_owners(path).to_pylist()
        self.ledger = fm.read_ledger(path).to_pylist()
        self.buyers = {buyer.name: buyer for buyer in scenario.resolved_buyers()}
        self.indices = {name: index for index, name in enumerate(self.buyers)}
        self.keys = [Key(r, b) for r in range(scenario.rounds) for b in self.buyers]
        self.options = {
            b.name.split(":")[-1].lower(): b.options for b in scenario.owners.behaviours
        }
        self.in_turn = scenario.auction.name == "seq-price"

    # --- small parts

    @remembered
    def rows(self, kind, key):
        return [row for row in self.log[kind] if (row["round"], row["buyer"]) == key]

    @remembered
    def by(self, kind, key, end):
        """The events of a round by their sender or receiver."""
        return {row[end]: row for row in self.rows(kind, key)}

    def person(self, name):
        return self.owners[name % len(self.owners)]

    @remembered
    def draws(self, key, name):
        person = np.array([name % len(self.owners)])
        width, index = len(Draws._fields), self.indices[key.buyer]
        uniform = self.streams.per_owner(Purpose.WORLD, person, width, index, key.round)[0]
        return Draws(*map(self._seconds, uniform[:7]), *uniform[7:])

    @remembered
    def buyer_delays(self, key):
        """Seconds that announcement, delivery and payment take between buyer and broker."""
        rng = self.streams.generator(Purpose.WORLD, self.indices[key.buyer], key.round, TO_BUYER)
        return [self._seconds(uniform) for uniform in rng.random(3)]

    def _seconds(self, uniform):
        options = self.scenario.market.delay.options
        return float(options["low"] + (options["high"] - options["low"]) * uniform)

    def value(self, name, loss, records):
        """What a loss is truly worth to the person behind a name."""
        p = self.person(name)
        step_cost = p["rate"] * p["data_size"] * p["privacy_budget"]
        return worth(p["family"], p["rate"], records, loss, step_cost)

    def full_value(self, person):
        return self.value(person["owner"], person["privacy_budget"], person["data_size"])

    def accepts(self, payment, value):
        return payment >= value * (1 - 1e-9)

    @remembered
    def asked(self, key):
        rng = self.streams.generator(Purpose.BIDDERS, self.indices[key.buyer], key.round)
        count, bidders = len(self.owners), self.scenario.market.bidders
        return [self.owners[i] for i in rng.choice(count, bidders, replace=False, shuffle=True)]

    @remembered
    def budget(self, key):
        index, spec = self.indices[key.buyer], self.buyers[key.buyer].budget
        rng = self.streams.generator(Purpose.BUDGET, index)
        money = rng.uniform(*(spec.factor or spec.amount), self.scenario.rounds)[key.round]
        return money * (sum(map(self.full_value, self.asked(key))) if spec.factor else 1.0)

    # --- when things happen

    def ended(self, key):
        return self.rows("delivery", key)[0]["time"] + self.buyer_delays(key)[1]

    def started(self, key):
        return self.ended(Key(key.round - 1, key.buyer)) if key.round else 0.0

    def opened(self, key):
        """When the broker asks the owners."""
        return self.started(key) + self.buyer_delays(key)[0]

    def arrivals(self, kind, key):
        return [
            row["time"] + getattr(self.draws(key, row["sender"]), kind)
            for row in self.rows(kind, key)
        ]

    @staticmethod
    def closed(opened, arrivals, expected, deadline):
        """When a collection ends: with the last message that is expected, or with the deadline."""
        if len(arrivals) < expected or max(arrivals, default=opened) > opened + deadline:
            return opened + deadline
        return max(arrivals, default=opened)

    def bids_closed(self, key):
        expected = len(self.rows("announcement", key)) - 1
        deadline = self.scenario.market.bid_deadline
        return self.closed(self.opened(key), self.arrivals("bid", key), expected, deadline)

    def decisions_closed(self, key):
        opened = self.bids_closed(key)
        if self.in_turn:  # no answer comes late in the market of the twin
            return max(self.arrivals("decision", key), default=opened)
        winners = [row for row in self.rows("allocation", key) if row["privacy_loss"] > 0]
        arrivals = self.arrivals("decision", key)
        return self.closed(opened, arrivals, len(winners), self.scenario.market.decision_deadline)

    def gradients_closed(self, key):
        arrivals, agreed = self.arrivals("gradient", key), len(self.rows("model", key))
        deadline = self.scenario.market.gradient_deadline
        return self.closed(self.decisions_closed(key), arrivals, agreed, deadline)

    # --- privacy ledgers

    def sold(self, name, time):
        sent = self.log["gradient"]
        return sum(g["privacy_loss"] for g in sent if g["sender"] == name and g["time"] < time)

    def released(self, key, name):
        """When a promise ends: with the gradient, a dropout, or the news that it came too late."""
        if name in (sent := self.by("gradient", key, "sender")):
            return sent[name]["time"]
        lost = [row for row in self.rows("dropout", key) if row["sender"] == name]
        if lost:
            return lost[0]["time"]
        late = [
            r for r in self.rows("late", key) if (r["sender"], r["message"]) == (name, "decision")
        ]
        return late[0]["time"] + self.draws(key, name).allocation

    def reserved(self, name, time, decisions):
        """What an owner has promised at a time, by decisions (key, name, time, loss) to accept."""
        return sum(
            loss
            for key, who, when, loss in decisions
            if who == name and when < time < self.released(key, who)
        )

    @cached_property
    def promises(self):
        """Decisions to accept: (key, name, time, privacy loss)."""
        promises = []
        for key in self.keys:
            offers = self.by("allocation", key, "receiver")
            for row in self.rows("decision", key):
                if row["accepted"]:
                    loss = offers[row["sender"]]["privacy_loss"]
                    promises.append((key, row["sender"], row["time"], loss))
        return promises

    def left(self, person, key):
        lifetime = self.scenario.owners.lifetime_budget
        if lifetime is None:
            return np.inf
        name, time = person["owner"], self.opened(key)
        return max(lifetime - self.sold(name, time) - self.reserved(name, time, self.promises), 0.0)

    def absence(self, person, key):
        if self.draws(key, person["owner"]).availability >= self.scenario.owners.availability:
            return "away"
        return (
            "lifetime budget" if self.left(person, key) <= 1e-9 * person["privacy_budget"] else None
        )

    # --- auctions

    def levels(self, bid):
        """What a bid asks at each level."""
        if bid["values"] is not None:
            return bid["values"]
        count, size, budget = self.scenario.market.levels, bid["data_size"], bid["privacy_budget"]
        cost = bid["rate"] * size * budget
        shares = np.arange(1, count + 1) / count
        return [worth(bid["family"], bid["rate"], size, budget * share, cost) for share in shares]

    @remembered
    def bids_in_time(self, key):
        """The bids of the auction, in order of arrival."""
        limit = self.opened(key) + self.scenario.market.bid_deadline
        arriving = [
            (arrival, bid["seq"], bid)
            for arrival, bid in zip(self.arrivals("bid", key), self.rows("bid", key), strict=True)
            if arrival <= limit
        ]
        return [bid for *_, bid in sorted(arriving, key=lambda bid: bid[:2])]

    @remembered
    def auction(self, buyer):
        spec = self.buyers[buyer].auction
        error = scenario_error(self.scenario, self.buyers[buyer])
        return fm.auctions.auction_in(fm.auctions.create(spec.name, **spec.options), error)

    def batch(self, bids):
        return fm.BidBatch(
            [[self.levels(bid) for bid in bids]],
            [[bid["privacy_budget"] for bid in bids]],
            [[float(bid["data_size"]) for bid in bids]],
            self.stated(bids),
        )

    def stated(self, bids):
        """(1, n) what owners answer menus by: the type that they have, or pretend to have."""
        numbers = ("rate", "privacy_budget", "data_size")
        columns = [np.array([[bid[name] for bid in bids]], float) for name in numbers]
        names = [bid["family"] or "step" for bid in bids]  # a table alone states no family
        codes = family_codes(np.array([names]))
        return StatedValuations.of(OwnerTypes(codes, *(np.nan_to_num(c) for c in columns)))

    def outcome(self, key, bids):
        """Privacy loss and payment of each bid."""
        if self.in_turn:
            return [step.sold for step in sorted(self.sale(key, bids))]
        rng = self.streams.generator(Purpose.AUCTION, self.indices[key.buyer], key.round)
        found = self.auction(key.buyer).decide(self.batch(bids), np.array([self.budget(key)]), rng)
        return list(zip(found.privacy_loss[0].tolist(), found.payment[0].tolist(), strict=True))

    def sale(self, key, bids):
        """A sale in turn, menu by menu."""
        batch, steps, time = self.batch(bids), [], self.bids_closed(key)
        auction = self.auction(key.buyer)
        reading = auction.reading(batch)
        asking = auction.ask(batch.data_size, np.array([self.budget(key)]))
        for place, offer in enumerate(asking):
            row = int(offer.owner[0])
            name = bids[row]["sender"]
            delays = self.draws(key, name)
            loss, payment, size = (
                float(part[0]) for part in auction.choice(reading, np.zeros(1, int), offer)
            )
            value = self.value(name, loss, size)
            accepted = loss > 0 and self.accepts(payment, value)
            reason = (
                "nothing on the menu" if loss == 0 else "accepted" if accepted else "below cost"
            )
            menu = {
                "place": place,
                "money": float(offer.money[0]),
                "privacy_losses": offer.privacy_loss.tolist(),
                "payments": offer.payment[0].tolist(),
            }
            decision = {"accepted": accepted, "reason": reason, "value": value}
            sold = (loss, payment) if accepted else (0.0, 0.0)
            steps.append(Step(row, name, time, time + delays.allocation, menu, decision, sold))
            asking.settle(*(np.array([part]) for part in sold))
            time += delays.allocation + delays.decision
        return steps

    # --- reports

    def reports(self, p, key):
        """The bids of a person: one, or one under each of her names."""
        budget = min(p["privacy_budget"], max(self.left(p, key), 1e-12))
        honest = dict.fromkeys(column.name for column in KINDS["bid"]) | {
            "sender": p["owner"],
            "family": p["family"],
            "rate": p["rate"],
            "privacy_budget": budget,
            "data_size": p["data_size"],
        }
        cost = p["rate"] * p["data_size"] * p["privacy_budget"]

        def asking(report, factor=1.0):
            count, rate = self.scenario.market.levels, report["rate"] / factor
            shares = np.arange(1, count + 1) / count * report["privacy_budget"]
            family, records = report["family"], report["data_size"]
            values = [factor * worth(family, rate, records, loss, cost) for loss in shares]
            return report | {"value": values[-1], "values": values}

        truth = asking(honest)
        if p["behaviour"] is None:
            capped_step = p["family"] == "step" and budget < p["privacy_budget"]
            return [truth if capped_step else truth | {"values": None}]
        lying = honest | {
            "behaviour": p["behaviour"],
            "true_privacy_budget": budget,
            "true_data_size": p["data_size"],
            "true_value": truth["value"],
        }
        return [asking(*report) for report in REPORTS[p["behaviour"]](self, p, lying)]

    # --- learning

    @cached_property
    def data(self):
        return fm.load_data(self.scenario)

    @remembered
    def teacher(self, buyer):
        """The model of a buyer."""
        return fm.buyer_model(self.scenario, self.data, buyer)

    @cached_property
    def people(self):
        return create_population(self.scenario, self.streams, self.data)

    def records(self, number):
        """The records of an owner, in the order in which she offers them."""
        return self.people.rows[self.people.offsets[number] : self.people.offsets[number + 1]]

    @property
    def learns(self):
        return self.scenario.model.name != "none"

    @remembered
    def clipped(self, key):
        """Gradients of the bids in time before and after clipping, by name."""
        bids = self.bids_in_time(key)
        records = []
        for bid in bids:
            number, name = bid["sender"] % len(self.owners), bid["sender"]
            earlier = sum(
                b["data_size"]
                for b in self.rows("bid", key)
                if b["sender"] % len(self.owners) == number and b["sender"] < name
            )
            records.append(self.records(number)[earlier : earlier + bid["data_size"]])
        sizes = np.array([len(rows) for rows in records])
        rows, names = np.concatenate(records), [bid["sender"] for bid in bids]
        raw = self.computed_updates(key, rows, sizes, names)
        clip, kind = self.scenario.privacy.clip, self.perturbation(key.buyer).domain
        norms = np.abs(raw).sum(axis=1) if kind == "l1" else np.sqrt((raw**2).sum(axis=1))
        longest = 1.0 if kind in ("l1", "l2") else np.inf  # a sphere takes no shorter ones
        return {
            bid["sender"]: (norm, gradient * min(longest, clip / norm))
            for bid, norm, gradient in zip(bids, norms.tolist(), raw, strict=True)
        }

    def computed_updates(self, key, rows, sizes, names):
        """Gradients, or the changes by local steps, of the owners of these names."""
        model, spec = self.teacher(key.buyer), self.scenario.learning
        if spec.update == "gradient":
            return model.gradients(self.parameters(key), self.data, rows, sizes)
        streams, index = self.streams, self.indices[key.buyer]
        given = (self.parameters(key), self.data, rows, sizes, streams, names, key.round, index)
        return local_changes(model, spec, *given)

    def processed_records(self, size):
        """Records that an owner goes through to compute what she sends, repeats counted."""
        spec = self.scenario.learning
        return size if spec.update == "gradient" else spec.steps * min(size, spec.batch or size)

    @remembered
    def perturbation(self, buyer):
        spec = self.buyers[buyer].perturbation
        return fm.perturbation.create(spec.name, **spec.options)

    def dimension(self, buyer):
        if self.learns:
            return self.teacher(buyer).dimension
        return self.buyers[buyer].model.options.get("dimension", 1)

    def total_variance(self, key, loss):
        """Of a released vector: by the formula for Laplace noise, else by the policy's own."""
        clip, count = self.scenario.privacy.clip, self.dimension(key.buyer)
        policy = self.perturbation(key.buyer)
        if policy.name == "laplace":
            return count * 8 * clip**2 / loss**2
        return float(policy.variance(np.array([loss]), count, clip)[0])

    @remembered
    def sent(self, key):
        """(weight, message) of every aggregated gradient with its noise."""
        clip, index = self.scenario.privacy.clip, self.indices[key.buyer]
        messages = []
        for row in self.rows("weight", key):
            name, gradient = row["receiver"], self.clipped(key)[row["receiver"]][1]
            rng = self.streams.generator(Purpose.NOISE, name, key.round, index)
            policy, loss = self.perturbation(key.buyer), row["privacy_loss"]
            if policy.name == "laplace":
                message = gradient + rng.laplace(size=len(gradient)) * (2 * clip / loss)
            else:
                message = policy.release(gradient[None], np.array([loss]), rng, clip)[0]
            messages.append((row["weight"], message))
        return messages

    def weighted_sum(self, key):
        total = None
        for weight, message in self.sent(key):
            total = weight * message + (0.0 if total is None else total)
        return total

    @remembered
    def delivered(self, key):
        """The aggregated gradient with its noise; None if there is none."""
        robust = self.buyers[key.buyer].robust
        if robust.name == "weighted-sum" or not self.sent(key):
            return self.weighted_sum(key)
        assert robust.name == "trimmed-mean"
        trim, gradient = robust.options["trim"], []
        for coordinate in range(len(self.sent(key)[0][1])):
            total, begin = 0.0, 0.0
            for value, weight in sorted((m[coordinate], w) for w, m in self.sent(key)):
                end = begin + weight
                total += value * max(0.0, min(end, 1 - trim) - max(begin, trim))
                begin = end
            gradient.append(total / (1 - 2 * trim))
        return np.array(gradient)

    @remembered
    def parameters(self, key):
        """Before the step of a round."""
        if key.round == 0:
            return self.teacher(key.buyer).initial()
        before = Key(key.round - 1, key.buyer)
        return self.parameters(before) - self.step(before)

    def shrinkage(self, key):
        if not self.buyers[key.buyer].model.shrink:
            return 1.0
        squared = self.scenario.privacy.clip**2
        return squared / (squared + self.rows("delivery", key)[0]["vector_bound"])

    def step(self, key):
        """What a buyer subtracts in a round: her rate times a sum of all that was delivered."""
        keys = [Key(number, key.buyer) for number in range(key.round + 1)]
        if self.delivered(key) is None:
            return 0.0
        updates = [
            None if self.delivered(k) is None else self.shrinkage(k) * self.delivered(k)
            for k in keys
        ]
        model, last = self.buyers[key.buyer].model, self.scenario.rounds - 1
        assert model.schedule.name in ("constant", "cosine")
        assert model.optimizer.name in ("sgd", "momentum")
        rate, decay = model.learning_rate, model.optimizer.options.get("momentum", 0.0)
        if model.schedule.name == "cosine":
            rate *= (1 + np.cos(np.pi * key.round / last)) / 2
        latest_first = [update for update in reversed(updates) if update is not None]
        return rate * sum(decay**age * update for age, update in enumerate(latest_first))

    def evaluated(self, key):
        """The parameters that are evaluated when this round begins, in the mean of all so far."""
        share = self.buyers[key.buyer].model.averaging
        if share == 0:
            return self.parameters(key)
        eta, rounds = 2 / share - 2, range(1, key.round + 1)
        weights = [math.exp(math.lgamma(number + eta) - math.lgamma(number)) for number in rounds]
        models = [self.parameters(Key(number, key.buyer)) for number in rounds]
        return sum(w * m for w, m in zip(weights, models, strict=True)) / sum(weights)

    @remembered
    def evaluation(self, key):
        last = key.round == self.scenario.rounds - 1
        if not self.learns or not (
            last or (key.round + 1) % self.buyers[key.buyer].model.evaluate_every == 0
        ):
            return None
        after = self.evaluated(Key(key.round + 1, key.buyer))
        return self.teacher(key.buyer).evaluate(after, self.data)

    @property
    def message_bytes(self):
        first = next(iter(self.buyers))
        return self.teacher(first).dimension * 8 if self.learns else 0

    def error_of_data(self, key):
        """(true_error, true_squared_bias) of a delivery; None without learning or gradient."""
        if not self.learns or self.delivered(key) is None:
            return None, None
        bids, gradients = self.bids_in_time(key), self.clipped(key)
        total = sum(bid["data_size"] for bid in bids)
        ideal = sum(b["data_size"] / total * gradients[b["sender"]][1] for b in bids)
        weights = self.rows("weight", key)
        noiseless = sum(w["weight"] * gradients[w["receiver"]][1] for w in weights)
        error, bias = self.delivered(key) - ideal, noiseless - ideal
        return float((error**2).sum()), float((bias**2).sum())


def _scale(twin, person, lying):
    factor = twin.options["scale"]["factor"]
    return [(lying | {"rate": person["rate"] * factor}, factor)]


def _shade(twin, person, lying):
    shares = twin.options["shade"]
    size = max(1, int(person["data_size"] * shares["data_size"]))
    budget = lying["privacy_budget"] * shares["privacy_budget"]
    return [(lying | {"data_size": size, "privacy_budget": budget},)]


def _pretend(twin, person, lying):
    return [(lying | {"family": twin.options["pretend"]["family"]},)]


def _false_names(twin, person, lying):
    size, names = person["data_size"], twin.options["false-names"]["identities"]
    reports = []
    for number in range(names):
        part = size // names + (number < size % names)
        less, more = 0.0, 0.0
        if number:
            secret = struct.pack("<dqq", person["rate"], person["owner"], number)
            lots = struct.unpack("<LL", hashlib.sha256(secret).digest()[:8])
            less, more = (DISGUISE * lot / 2**32 for lot in lots)
        false = {
            "privacy_budget": lying["privacy_budget"] * (1.0 - less),
            "rate": lying["rate"] * ((1.0 + more) / (1.0 - less)),
            "sender": person["owner"] + number * len(twin.owners),
            "person": person["owner"] if number else None,
            "true_value": lying["true_value"] * part / size,
        }
        reports.append((lying | false | {"data_size": part, "true_data_size": part},))
    return reports


def _patron(twin, person, lying):
    return [(lying | {"rate": person["rate"] * PATRON_FACTOR}, PATRON_FACTOR)]


REPORTS = {
    "scale": _scale,
    "shade": _shade,
    "pretend": _pretend,
    "false-names": _false_names,
    "patron": _patron,
}
