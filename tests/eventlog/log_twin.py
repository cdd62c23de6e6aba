"""The rows of every kind of event, worked out again from the other kinds."""

import math
from functools import cached_property, lru_cache
from itertools import permutations

import numpy as np

import flmarket_sim as fm
from flmarket_sim.eventlog import BROKER, buyer_id
from tests.eventlog.market_twin import GIFT, MarketTwin


class LogTwin(MarketTwin):
    """What a log should be. A method that is named after a kind reads no event of that kind."""

    def announcement(self, key):
        money = {"budget": self.budget(key)}
        me = buyer_id(self.indices[key.buyer])
        yield envelope(key, self.started(key), me, BROKER) | money
        false = [row["sender"] for row in self.rows("bid", key) if row["person"] is not None]
        for name in [*(person["owner"] for person in self.asked(key)), *false]:
            yield envelope(key, self.opened(key), BROKER, name) | money

    def bid(self, key):
        for person in self.asked(key):
            if self.absence(person, key) is None:
                time = self.opened(key) + self.draws(key, person["owner"]).announcement
                for report in self.reports(person, key):
                    yield envelope(key, time, report.pop("sender"), BROKER) | report

    def allocation(self, key):
        bids = self.bids_in_time(key)
        time = self.decisions_closed(key) if self.in_turn else self.bids_closed(key)
        for bid, (loss, payment) in zip(bids, self.outcome(key, bids) if bids else [], strict=True):
            outcome = {"privacy_loss": loss, "payment": payment}
            yield envelope(key, time, BROKER, bid["sender"]) | outcome

    def decision(self, key):
        return [row for owner_key, row in self.all_decisions if owner_key == key]

    @cached_property
    def all_decisions(self):
        """In order of time: a promise of one round may not fit beside that of another."""
        if self.in_turn:
            return [
                (key, envelope(key, step.answered, step.name, BROKER) | step.decision)
                for key in self.keys
                for step in self.sale(key, self.bids_in_time(key))
            ]
        offers = [
            (row["time"] + self.draws(key, row["receiver"]).allocation, key, row)
            for key in self.keys
            for row in self.rows("allocation", key)
            if row["privacy_loss"] > 0
        ]
        decisions, promises = [], []
        for time, key, offer in sorted(offers, key=lambda one: one[0]):
            name, loss = offer["receiver"], offer["privacy_loss"]
            value = self.value(name, loss, self.by("bid", key, "sender")[name]["data_size"])
            reason = "accepted" if self.accepts(offer["payment"], value) else "below cost"
            lifetime = self.scenario.owners.lifetime_budget
            if reason == "accepted" and lifetime is not None:
                taken = self.sold(name, time) + self.reserved(name, time, promises)
                reason = reason if taken + loss <= lifetime * (1 + 1e-12) else "lifetime budget"
            accepted = reason == "accepted"
            if accepted:
                promises.append((key, name, time, loss))
            row = {"accepted": accepted, "reason": reason, "value": value}
            decisions.append((key, envelope(key, time, name, BROKER) | row))
        return decisions

    def model(self, key):
        deadline = self.scenario.market.decision_deadline
        for decision in self.rows("decision", key):
            name = decision["sender"]
            arrival = decision["time"] + self.draws(key, name).decision
            if decision["accepted"] and (
                self.in_turn or arrival <= self.bids_closed(key) + deadline
            ):
                time = self.decisions_closed(key)
                yield envelope(key, time, BROKER, name) | {"bytes": self.message_bytes}

    def computed(self, key, name):
        """When an owner's gradient is ready."""
        speed = self.person(name)["records_per_second"]
        work = self.processed_records(self.by("bid", key, "sender")[name]["data_size"])
        seconds = work / speed if speed else 0.0
        sent = self.by("model", key, "receiver")[name]["time"]
        return sent + self.draws(key, name).model + seconds

    def gradient(self, key):
        clip = self.scenario.privacy.clip
        for row in self.rows("model", key):
            name = row["receiver"]
            if self.draws(key, name).dropout < self.scenario.owners.dropout:
                continue
            loss = self.by("allocation", key, "receiver")[name]["privacy_loss"]
            norm = self.clipped(key)[name][0] if self.learns else None
            yield envelope(key, self.computed(key, name), name, BROKER) | {
                "privacy_loss": loss,
                "records": self.by("bid", key, "sender")[name]["data_size"],
                "norm": norm,
                "clipped": None if norm is None else norm > clip,
                "finite": None if norm is None else np.isfinite(norm),
                "noise_scale": 2 * clip / loss if self.is_laplace(key) else None,
                "bytes": self.message_bytes,
                "variance": self.total_variance(key, loss),
                "delta": 0.0,
            }

    def is_laplace(self, key):
        return self.perturbation(key.buyer).name == "laplace"

    def counts_vectors(self, key):
        return self.buyers[key.buyer].aggregation.error == "vector"

    def in_time(self, key):
        """The gradients that are aggregated."""
        limit = self.decisions_closed(key) + self.scenario.market.gradient_deadline
        sent = zip(self.arrivals("gradient", key), self.rows("gradient", key), strict=True)
        return [gradient for arrival, gradient in sent if arrival <= limit]

    def weight(self, key):
        sent = {row["sender"]: row["privacy_loss"] for row in self.in_time(key)}
        if not sent:
            return
        for bid, weight, share in self.purchase(key, sent):
            if bid["sender"] in sent:
                yield envelope(key, self.gradients_closed(key), BROKER, bid["sender"]) | {
                    "weight": weight,
                    "share": share,
                    "privacy_loss": sent[bid["sender"]],
                }

    def purchase(self, key, sold):
        """(bid, weight, data share) of every bidder, if these names sell these losses."""
        bids = self.bids_in_time(key)
        loss = np.array([[sold.get(bid["sender"], 0.0) for bid in bids]])
        size = np.array([[float(bid["data_size"]) for bid in bids]])
        rule = fm.aggregation.create(self.buyers[key.buyer].aggregation.name)
        variance = None
        if self.counts_vectors(key):
            each = [self.total_variance(key, e) if e else np.inf for e in loss[0]]
            variance = np.array([each])
        weights = rule.weights(loss, size, self.scenario.privacy.clip, variance)[0]
        return list(zip(bids, weights, (size / size.sum())[0], strict=True))

    def error_of_purchase(self, key, sold):
        clip, bought = self.scenario.privacy.clip, self.purchase(key, sold)
        variance = 0.0
        for bid, weight, _ in bought:
            loss = sold.get(bid["sender"])
            if loss is not None:
                each = (
                    self.total_variance(key, loss)
                    if self.counts_vectors(key)
                    else 8 * clip**2 / loss**2
                )
                variance += weight**2 * each
        return variance + clip**2 * sum(abs(weight - share) for _, weight, share in bought) ** 2

    def contribution(self, key):
        """Exact Shapley values by error bounds, over all orders in which sellers can come."""
        spec = self.scenario.contribution
        sold = {row["receiver"]: row["privacy_loss"] for row in self.rows("weight", key)}
        if spec is None or not sold:
            return
        assert (spec.name, spec.value) == ("shapley", "error-bound")
        worst = max(self.error_of_purchase(key, {name: e}) for name, e in sold.items())

        @lru_cache
        def worth(names):
            part = {name: sold[name] for name in names}
            return -self.error_of_purchase(key, part) if names else -worst

        values = dict.fromkeys(sold, 0.0)
        for order in permutations(sold):
            for place, name in enumerate(order):
                before = frozenset(order[:place])
                added = worth(before | {name}) - worth(before)
                values[name] += added / math.factorial(len(sold))
        positive = {name: max(value, 0.0) for name, value in values.items()}
        total = sum(positive.values())
        for name, value in values.items():
            yield envelope(key, self.gradients_closed(key), BROKER, name) | {
                "value": value,
                "standard_error": 0.0,
                "share": positive[name] / total if total > 1e-9 else 1 / len(sold),
            }

    def paid(self, key):
        """The money of each seller, by name."""
        offered = self.by("allocation", key, "receiver")
        names = [row["receiver"] for row in self.rows("weight", key)]
        money = {name: offered[name]["payment"] for name in names}
        spec = self.scenario.contribution
        if spec is None or spec.pays == "nothing":
            return money
        total = self.budget(key) if spec.pays == "budget" else sum(money.values())
        shares = self.by("contribution", key, "receiver")
        return {name: shares[name]["share"] * total for name in names}

    def cheat(self, key):
        """Nothing without cheats and checks; tests/market/test_cheats.py has such markets."""
        assert not self.scenario.owners.cheats and self.scenario.check is None
        return []

    verdict = forfeit = cheat

    def combination(self, key):
        robust = self.buyers[key.buyer].robust
        if robust.name == "weighted-sum" or not self.rows("weight", key):
            return
        departure = bound = None
        if self.learns:
            departure = float(((self.delivered(key) - self.weighted_sum(key)) ** 2).sum())
            vector = self.rows("delivery", key)[0]["vector_bound"]
            bound = vector + departure + 2 * math.sqrt(vector * departure)
        me = buyer_id(self.indices[key.buyer])
        yield envelope(key, self.gradients_closed(key), BROKER, me) | {
            "departure": departure,
            "honest_bound": bound,
            "breakdown": robust.options["trim"],
        }

    def delivery(self, key):
        weights, clip = self.rows("weight", key), self.scenario.privacy.clip
        bids = self.bids_in_time(key)
        vector = sum(
            w["weight"] ** 2 * self.total_variance(key, w["privacy_loss"]) for w in weights
        )
        coordinate = sum(w["weight"] ** 2 * 8 * clip**2 / w["privacy_loss"] ** 2 for w in weights)
        variance = vector if self.counts_vectors(key) else coordinate
        by_name = {w["receiver"]: w["weight"] for w in weights}

        def squared_bias(size):
            total = sum(map(size, bids))
            gaps = [abs(by_name.get(bid["sender"], 0.0) - size(bid) / total) for bid in bids]
            return clip**2 * sum(gaps) ** 2

        valid, bias, true_bias = bool(weights), np.nan, np.nan
        if valid:
            bias = squared_bias(lambda bid: bid["data_size"])
            true_bias = squared_bias(lambda bid: bid["true_data_size"] or bid["data_size"])
        error, squared = self.error_of_data(key)
        me = buyer_id(self.indices[key.buyer])
        yield envelope(key, self.gradients_closed(key), BROKER, me) | {
            "valid": valid,
            "gradients": len(weights),
            "owed": sum(self.paid(key).values()),
            "error_bound": variance + bias if valid else np.inf,
            "variance": variance if valid else np.inf,
            "squared_bias": bias,
            "true_error": error,
            "true_squared_bias": squared,
            "bound_of_data": variance + true_bias if valid else np.inf,
            "error_kind": "vector" if self.counts_vectors(key) else "coordinate",
            "vector_bound": vector + bias if valid else np.inf,
            "coordinate_bound": coordinate + bias if valid else np.inf,
        }

    def payment(self, key):
        weights = self.rows("weight", key)
        if weights:
            time, owed = self.ended(key), self.rows("delivery", key)[0]["owed"]
            yield envelope(key, time, buyer_id(self.indices[key.buyer]), BROKER) | {"amount": owed}
        for row in weights:
            amount = self.paid(key)[row["receiver"]]
            time = self.ended(key) + self.buyer_delays(key)[2]
            yield envelope(key, time, BROKER, row["receiver"]) | {"amount": amount}

    def update(self, key):
        seen, me = self.evaluation(key), buyer_id(self.indices[key.buyer])
        yield envelope(key, self.ended(key), me, me) | {
            "valid": bool(self.rows("weight", key)),
            "loss": None if seen is None else seen.loss,
            "accuracy": None if seen is None else seen.accuracy,
            "recall": None if seen is None else seen.recall.tolist(),
            "balanced_accuracy": None if seen is None else np.nanmean(seen.recall),
        }

    def late(self, key):
        rules = self.scenario.market
        limits = {
            "bid": self.opened(key) + rules.bid_deadline,
            "decision": np.inf if self.in_turn else self.bids_closed(key) + rules.decision_deadline,
            "gradient": self.decisions_closed(key) + rules.gradient_deadline,
        }
        for kind, limit in limits.items():
            for arrival, row in zip(self.arrivals(kind, key), self.rows(kind, key), strict=True):
                if arrival > limit:
                    yield envelope(key, arrival, row["sender"], BROKER) | {"message": kind}

    def dropout(self, key):
        for person in self.asked(key):
            name, reason = person["owner"], self.absence(person, key)
            if reason is not None:
                time = self.opened(key) + self.draws(key, name).announcement
                yield envelope(key, time, name, BROKER) | {"stage": "bid", "reason": reason}
        for row in self.rows("model", key):
            name = row["receiver"]
            if self.draws(key, name).dropout < self.scenario.owners.dropout:
                time = self.computed(key, name)
                lost = {"stage": "gradient", "reason": "dropped out"}
                yield envelope(key, time, name, BROKER) | lost

    def round(self, key):
        me, seen = buyer_id(self.indices[key.buyer]), self.evaluation(key)
        allocations, weights = self.rows("allocation", key), self.rows("weight", key)
        bids = self.by("bid", key, "sender")
        delivery = self.rows("delivery", key)[0]
        paid = [row["amount"] for row in self.rows("payment", key) if row["sender"] == BROKER]
        yield envelope(key, self.ended(key), me, me) | {
            "started": self.started(key),
            "ended": self.ended(key),
            "budget": self.budget(key),
            "asked": len(self.rows("announcement", key)) - 1,
            "bids": len(allocations),
            "winners": sum(row["privacy_loss"] > 0 for row in allocations),
            "accepted": len(self.rows("model", key)),
            "delivered": len(weights),
            "spent": sum(paid),
            "privacy_sold": sum(row["privacy_loss"] for row in weights),
            "value_sold": sum(
                self.value(row["receiver"], row["privacy_loss"], bids[row["receiver"]]["data_size"])
                for row in weights
            ),
            "valid": bool(weights),
            "loss": None if seen is None else seen.loss,
            "accuracy": None if seen is None else seen.accuracy,
            "balanced_accuracy": None if seen is None else np.nanmean(seen.recall),
            "error_bound": delivery["error_bound"],
            "variance": delivery["variance"],
            "squared_bias": delivery["squared_bias"],
            "true_error": delivery["true_error"],
            "bound_of_data": delivery["bound_of_data"],
            "error_kind": delivery["error_kind"],
            "vector_bound": delivery["vector_bound"],
            "coordinate_bound": delivery["coordinate_bound"],
        }

    def counterfactual(self, key):
        if not self.scenario.market.counterfactual:
            return
        bids = self.bids_in_time(key)
        offers = self.by("allocation", key, "receiver")
        time = self.decisions_closed(key) if self.in_turn else self.bids_closed(key)
        for p in (p for p in self.asked(key) if p["behaviour"] is not None):
            own = [b for b in bids if b["sender"] % len(self.owners) == p["owner"]]
            if not own:
                continue
            utility = 0.0
            for bid in own:
                offer = offers[bid["sender"]]
                cost = self.value(bid["sender"], offer["privacy_loss"], bid["data_size"])
                if self.accepts(offer["payment"], cost):
                    utility += offer["payment"] - cost
            truth = self.reports(p | {"behaviour": None}, key)[0]
            honest = [truth if b is own[0] else b for b in bids if b is own[0] or b not in own]
            loss, payment = self.outcome(key, honest)[honest.index(truth)]
            yield envelope(key, time, p["owner"], BROKER) | {
                "utility": utility,
                "truthful_utility": max(
                    payment - self.value(p["owner"], loss, p["data_size"]), 0.0
                ),
                "truthful_privacy_loss": loss,
                "truthful_payment": payment,
            }

    def transfer(self, key):
        bidding = self.by("bid", key, "sender")
        asked = [person for person in self.asked(key) if person["owner"] in bidding]
        patrons = [person["owner"] for person in asked if person["behaviour"] == "patron"]
        income = self.by("payment", key, "receiver")
        for payer, payee in zip(patrons, patrons[1:] + patrons[:1], strict=True):
            time, amount = (
                self.gradients_closed(key),
                GIFT * (income[payer]["amount"] if payer in income else 0.0),
            )
            yield envelope(key, time, payer, payee) | {"amount": amount}

    def offer(self, key):
        for step in self.sale(key, self.bids_in_time(key)) if self.in_turn else []:
            yield envelope(key, step.asked, BROKER, step.name) | step.menu

    def expected_ledger(self):
        """What the events add up to for each owner."""
        count = len(self.owners)
        expected = [
            dict.fromkeys(("privacy_sold", "gradients", "earned", "transferred", "delta_sold"), 0.0)
            | {"owner": i}
            for i in range(count)
        ]
        largest = {}
        for row in self.log["gradient"]:
            expected[row["sender"] % count]["gradients"] += 1
            key = (row["round"], row["buyer"], row["sender"] % count)
            largest[key] = max(largest.get(key, 0.0), row["privacy_loss"])
        for (*_, owner), loss in largest.items():
            expected[owner]["privacy_sold"] += loss
        for row in self.log["payment"]:
            if row["receiver"] >= 0:
                expected[row["receiver"] % count]["earned"] += row["amount"]
        for row in self.log["transfer"]:
            expected[row["sender"]]["transferred"] -= row["amount"]
            expected[row["receiver"]]["transferred"] += row["amount"]
        return expected


def envelope(key, time, sender, receiver):
    return {
        "time": time,
        "round": key.round,
        "buyer": key.buyer,
        "sender": sender,
        "receiver": receiver,
    }
