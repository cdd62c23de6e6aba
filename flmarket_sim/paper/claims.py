"""The claims of the paper, each judged by the rows of our experiments: verdicts are computed.

Where the authors' published weights were measured too, a claim about their networks is judged
separately for those weights and for ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from flmarket_sim.paper.paper_market import PUBLISHED
from flmarket_sim.paper.verdicts import (
    DM,
    NETWORKS,
    OURS,
    RIVALS,
    ClaimVerdict,
    Comparison,
    NotAsked,
    Row,
    Ruling,
    by_market,
    cells,
    interval,
    is_below,
    is_negative,
    is_positive,
    joined,
    last_round,
    measured,
    networks,
    outcome_of,
    signs_of,
)

STILL_BUYS = 0.5  # of what the smallest M buys
BEYOND = "beyond the paper"
NO_RIVAL = " or ".join(RIVALS)
APART = " (comparisons count after Holm's correction at 5 %)"


def verdicts(name: str, rows: list[Row]) -> list[ClaimVerdict]:
    """Verdicts on the claims that a result is about."""
    judged = []
    for claim, judge in CLAIMS[name]:
        try:
            judged += [
                ClaimVerdict(claim.format(networks=of), outcome, evidence)
                for of, outcome, evidence in judge(rows)
            ]
        except NotAsked as missing:
            evidence = f"these rows have no {missing}"
            judged.append(ClaimVerdict(claim.format(networks=OURS), "not asked", evidence))
    return judged


def dm_has_the_least_error(rows: list[Row]) -> Iterator[Ruling]:
    places = cells(measured(rows, "error_bound_low"), "auction", "market", "rule", "budget_factor")
    for prefix, owner in networks(rows):
        pairs = {
            (rival, market, *place): is_below(row, places[rival, market, *place], "error_bound")
            for rival in (prefix + name for name in RIVALS)
            for (name, market, *place), row in places.items()
            if name == prefix + DM and (rival, market, *place) in places
        }
        signs = dict(zip(pairs, signs_of(list(pairs.values())), strict=True))
        counts = []
        for rival, market in dict.fromkeys((rival, market) for rival, market, *_ in pairs):
            of_pair = [sign for place, sign in signs.items() if place[:2] == (rival, market)]
            counts.append(
                f"below {rival} in {of_pair.count(1)} of {len(of_pair)} settings, "
                f"above in {of_pair.count(-1)} ({market})"
            )
        evidence = (
            f"{joined(counts, NO_RIVAL)}{APART}. Means are over valid gradients, as in the paper, "
            "which flatters an auction that buys nothing in hard markets"
        )
        yield owner, outcome_of(list(signs.values())), evidence


def error_falls_beyond_factor_one(rows: list[Row]) -> Iterator[Ruling]:
    places = cells(rows, "market", "rule", "auction", "budget_factor")
    last = max(row["budget_factor"] for row in rows)
    for prefix, owner in networks(rows):
        changes, comparisons = [], []
        for market, rule in dict.fromkeys((row["market"], row["rule"]) for row in rows):
            at_one = places.get((market, rule, prefix + DM, 1.0))
            at_last = places.get((market, rule, prefix + DM, last))
            if at_one is None or at_last is None or last <= 1.0:
                continue
            comparisons.append(is_below(at_last, at_one, "error_bound"))
            changes.append(
                f"{at_one['error_bound']:.2f} to {at_last['error_bound']:.2f} at factor {last:g} "
                f"({market}, {rule})"
            )
        evidence = joined(changes, "budget factor of 1 and one above")
        yield owner, outcome_of(signs_of(comparisons)), evidence


def mechanisms_beside_it(rows: list[Row]) -> Iterator[Ruling]:
    lists = []
    for market, in_market in by_market(rows).items():
        errors: dict[str, list[float]] = {}
        for row in in_market:
            if row["rule"] == "opt-aggr" and row.get("error_over_first_best"):
                errors.setdefault(row["auction"], []).append(row["error_bound"])
        ordered = sorted((sum(values) / len(values), name) for name, values in errors.items())
        lists.append(f"{market}: " + ", ".join(f"{name} {mean:.2f}" for mean, name in ordered))
    yield "", BEYOND, "; ".join(lists)


def lotteries_are_invalid_at_times(rows: list[Row]) -> Iterator[Ruling]:
    for prefix, owner in networks(rows):
        worst = _most_invalid(rows, [prefix + name for name in RIVALS])
        if not worst:
            raise NotAsked(NO_RIVAL)
        happens = [float(row["invalid_rate"]) > 0 for row in worst]
        outcome = "holds" if all(happens) else "holds in part" if any(happens) else "does not hold"
        yield owner, outcome, _invalid_shares(worst)


def dm_is_never_invalid(rows: list[Row]) -> Iterator[Ruling]:
    """One invalid gradient refutes a "never"."""
    for prefix, owner in networks(rows):
        worst = _most_invalid(rows, [prefix + DM])
        never = all(float(row["invalid_rate"]) == 0 for row in worst)
        yield owner, "holds" if never else "does not hold", _invalid_shares(worst)


def _most_invalid(rows: list[Row], auctions: list[str]) -> list[Row]:
    """For each auction the row with the largest share of invalid gradients."""
    of_each = [[row for row in rows if row["auction"] == name] for name in auctions]
    return [max(each, key=lambda row: float(row["invalid_rate"])) for each in of_each if each]


def _invalid_shares(worst: list[Row]) -> str:
    shares = "; ".join(
        f"{row['auction']} {row['invalid_rate']:.2%} ({row['market']}, {row['rule']}, "
        f"factor {row['budget_factor']:g})"
        if row["invalid_rate"]
        else f"{row['auction']} 0 (at most {row['invalid_rate_high']:.1%} by its interval)"
        for row in worst
    )
    return f"largest share of invalid gradients anywhere: {shares}"


def opt_aggr_always_saves(rows: list[Row]) -> Iterator[Ruling]:
    def described(row: Row) -> str:
        place = f"{row['auction']}, {row['market']}, factor {row['budget_factor']:g}"
        return f"{row['saving']:.1%} ({place})"

    savings = [row for row in measured(rows, "saving") if row["rule"] == "opt-aggr"]
    same_allocation = [row for row in savings if DM not in row["auction"]]
    ranges = []
    if same_allocation:
        least, most = (
            pick(same_allocation, key=lambda row: float(row["saving"])) for pick in (min, max)
        )
        ranges.append(f"same allocations: from {described(least)} to {described(most)}")
    for prefix, owner in NETWORKS.items():
        of_dm = [float(row["saving"]) for row in savings if row["auction"] == prefix + DM]
        if of_dm:
            ends = f"{min(of_dm):.1%} to {max(of_dm):.1%}"
            ranges.append(f"{DM}, trained for each rule apart: {ends} ({owner})")
    evidence = joined(ranges, "rule but one")
    signs = signs_of([is_positive(row, "saving") for row in savings])
    counts = f"; {signs.count(1)} of {len(signs)} settings save, {signs.count(-1)} lose{APART}"
    yield "", outcome_of(signs, always=True), evidence + counts


def dm_is_more_accurate(rows: list[Row]) -> Iterator[Ruling]:
    """The accuracy study takes differences from its first auction, which must be DM-RegretNet."""
    for prefix, owner in networks(rows):
        rivals = [
            row
            for row in measured(last_round(rows), "over_baseline_low")
            if row["auction"] in {prefix + name for name in RIVALS}
        ]
        differences = joined(
            (interval(row, "over_baseline", "market", "rule") for row in rivals),
            f"{NO_RIVAL} on two seeds",
        )
        outcome = outcome_of(signs_of([is_negative(row, "over_baseline") for row in rivals]))
        yield owner, outcome, f"their accuracy minus its own, paired: {differences}{APART}"


def opt_aggr_is_more_accurate(rows: list[Row]) -> Iterator[Ruling]:
    paired = [
        row for row in measured(last_round(rows), "over_last_rule_low") if row["rule"] == "opt-aggr"
    ]
    differences = joined(
        (interval(row, "over_last_rule", "market") for row in paired), "opt-aggr on two seeds"
    )
    evidence = f"accuracy under OptAggr minus under ConvlAggr, paired: {differences}{APART}"
    yield "", outcome_of(signs_of([is_positive(row, "over_last_rule") for row in paired])), evidence


def more_levels_help(rows: list[Row]) -> Iterator[Ruling]:
    """Compares the smallest M with the largest M that still buys.

    An auction that buys nothing gives no gain to a misreport, and proves nothing.
    """
    measures = {
        "as_published": "regret as published",
        "probed": "by the probe",
        "ir_violation": "IR violation",
    }
    changes: list[str] = []
    comparisons: list[Comparison] = []
    for market, in_market in by_market(rows).items():
        first = in_market[0]
        least = STILL_BUYS * first["privacy_bought"]
        idle = [row for row in in_market if row["privacy_bought"] < least]
        last = [row for row in in_market if row not in idle][-1]
        comparisons += [is_below(last, first, key) for key in measures]
        parts = [f"{label} {first[key]:.3g} to {last[key]:.3g}" for key, label in measures.items()]
        parts.append(
            f"privacy bought {first['privacy_bought']:.0%} to {last['privacy_bought']:.0%}"
        )
        changes.append(f"{market}, M = {first['levels']} to {last['levels']}: {', '.join(parts)}")
        if idle:
            shares = ", ".join(
                f"{row['privacy_bought']:.1%} at M = {row['levels']}" for row in idle
            )
            changes.append(f"left out, since they buy less than half of that: {shares}")
    yield "", outcome_of(signs_of(comparisons)), "; ".join(changes) + APART


def dm_is_most_truthful(rows: list[Row]) -> Iterator[Ruling]:
    metrics = {"as_published": "by the metric as published", "probe": "by the probe"}
    for prefix, owner in networks(rows):
        comparisons, numbers = [], []
        for key, label in metrics.items():
            for market, in_market in by_market(measured(rows, key)).items():
                places = cells(in_market, "auction", "rule")
                dm = places.get((prefix + DM, "opt-aggr"))
                rivals = [
                    places[prefix + name, "any"]
                    for name in RIVALS
                    if (prefix + name, "any") in places
                ]
                if dm is None or not rivals:
                    continue
                best = min(rivals, key=lambda row: float(row[key]))
                comparisons.append(is_below(dm, best, key))
                numbers.append(
                    f"{dm[key]:.3f} against {best[key]:.3f} of {best['auction']} "
                    f"({market}, {label})"
                )
        evidence = joined(numbers, NO_RIVAL)
        yield owner, outcome_of(signs_of(comparisons)), evidence + APART


def published_regret_is_what_it_is(rows: list[Row]) -> Iterator[Ruling]:
    row = cells(rows, "auction", "rule").get((PUBLISHED + DM, "opt-aggr"))
    if row is None:
        raise NotAsked("published weights: --authors DIR names the folder of the authors' files")
    outcome = "holds" if row["probe_low"] <= row["paper_regret"] else "does not hold"
    evidence = (
        f"paper {row['paper_regret']}; its metric finds {row['as_published']:.3f} (the paper's "
        f"test markets are not known), the corrected one {row['corrected']:.3f}, the probe "
        f"{row['probe']:.3f} [{row['probe_low']:.3f}, {row['probe_high']:.3f}]; "
        f"{row['gaining']:.0%} of owners can gain more than 1 %"
    )
    yield "", outcome, evidence


def luck_is_most_of_it(rows: list[Row]) -> Iterator[Ruling]:
    regrets = [
        f"{row['auction']} {row['as_published']:.3f} with lies, {row['luck']:.3f} without any "
        f"({row['market']})"
        for row in measured(rows, "luck")
        if row["auction"].removeprefix(PUBLISHED) in RIVALS
    ]
    yield "", BEYOND, "; ".join(regrets)


def where_the_money_goes(rows: list[Row]) -> Iterator[Ruling]:
    lists = []
    for market, in_market in by_market(rows).items():
        shares = [
            f"{row['auction']} spends {row['spent_share']:.0%}, "
            f"owners keep {row['surplus_share']:.0%}"
            for row in in_market
            if (row["rule"], row["budget_factor"]) == ("opt-aggr", 1.0)
            and row.get("spent_share") is not None
        ]
        if shares:
            lists.append(f"{market}: {', '.join(shares)}")
    yield "", BEYOND, joined(lists, "budget factor of 1")


Judge = Callable[[list[Row]], Iterator[Ruling]]
CLAIMS: dict[str, tuple[tuple[str, Judge], ...]] = {
    "error-bound": (
        (
            "DM-RegretNet has a lower error bound than RegretNet and M-RegretNet, under each rule "
            "({networks})",
            dm_has_the_least_error,
        ),
        (
            "Error still falls when the budget factor exceeds 1 ({networks})",
            error_falls_beyond_factor_one,
        ),
        (
            "Mechanisms that the paper does not compare, mean error bound over all budget factors, "
            "OptAggr",
            mechanisms_beside_it,
        ),
    ),
    "invalid-gradients": (
        (
            "RegretNet and M-RegretNet sample invalid gradients ({networks})",
            lotteries_are_invalid_at_times,
        ),
        ("DM-RegretNet never samples an invalid gradient ({networks})", dm_is_never_invalid),
    ),
    "aggregation": (
        (
            "Under each auction OptAggr has a lower error bound than ConvlAggr",
            opt_aggr_always_saves,
        ),
    ),
    "accuracy": (
        (
            "DM-RegretNet leads to more accurate models than RegretNet and M-RegretNet "
            "({networks})",
            dm_is_more_accurate,
        ),
        ("OptAggr leads to more accurate models than ConvlAggr", opt_aggr_is_more_accurate),
    ),
    "levels": (
        ("A larger M decreases both regret and IR violation of M-RegretNet", more_levels_help),
    ),
    "guarantees": (
        ("The published weights have the published regret", published_regret_is_what_it_is),
        (
            "DM-RegretNet has far lower regret than RegretNet and M-RegretNet ({networks})",
            dm_is_most_truthful,
        ),
        ("What the published metric calls regret when nobody lies (lotteries)", luck_is_most_of_it),
    ),
    "surplus": (("At budget factor 1, of the budget", where_the_money_goes),),
}
