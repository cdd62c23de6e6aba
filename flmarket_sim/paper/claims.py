"""The claims of the paper, each judged by the rows of our experiments: verdicts are computed.

Where the authors' published weights were measured too, a claim about their networks is judged
separately for those weights and for ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from flmarket_sim.paper.truthfulness_claims import (
    dm_is_most_truthful,
    luck_is_most_of_it,
    more_levels_help,
    more_levels_help_as_published,
    published_ir_is_what_it_is,
    published_number_is_the_regret,
    published_regret_is_what_it_is,
)
from flmarket_sim.paper.verdicts import (
    APART,
    AUTHORS,
    BEYOND,
    DM,
    NETWORKS,
    NO_RIVAL,
    OURS,
    RIVALS,
    ClaimVerdict,
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
        (
            "A larger M decreases both regret and IR violation of M-RegretNet, by the authors' "
            f"procedure ({AUTHORS})",
            more_levels_help_as_published,
        ),
        (
            "A larger M decreases both regret and IR violation of M-RegretNet, by all measures "
            "({networks})",
            more_levels_help,
        ),
    ),
    "guarantees": (
        (
            "By the authors' procedure the published weights have the published regret",
            published_regret_is_what_it_is,
        ),
        (
            "By the authors' procedure the published weights have the published IR violation",
            published_ir_is_what_it_is,
        ),
        (
            f"No misreport gains more than the published regret of DM-RegretNet ({AUTHORS})",
            published_number_is_the_regret,
        ),
        (
            "DM-RegretNet has far lower regret than RegretNet and M-RegretNet ({networks})",
            dm_is_most_truthful,
        ),
        ("What the published metric calls regret when nobody lies (lotteries)", luck_is_most_of_it),
    ),
    "surplus": (("At budget factor 1, of the budget", where_the_money_goes),),
}
