"""Each sentence of each study, made again from the printed rows in a slow and obvious way.

The functions here do not call the studies' own. They read the rows of a finding, as somebody with a
pencil would, and write the sentences that these rows allow.
"""

import pytest

from tests.support.made_up_findings import CASES, conclusion


def of(rows, **where):
    return [row for row in rows if all(row[key] == value for key, value in where.items())]


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def values_of(rows, key):
    """The different values of a column in their order."""
    return list(dict.fromkeys(row[key] for row in rows))


def interval(row, key):
    return f"{row[key]:.3f} [{row[f'{key}_low']:.3f}, {row[f'{key}_high']:.3f}]"


def misreport_gain(rows):
    for name in values_of(rows, "auction"):
        own = of(rows, auction=name)
        yield (
            f"{name}: the best misreports found earn {mean(r['gain_over_cost'] for r in own):.2f} "
            f"of cost on average; {100 * mean(r['share_gaining'] for r in own):.0f}% of owners "
            "gain more than 1 %"
        )


def rest_point(rows):
    for row in rows:
        yield (
            f"{row['auction']}: {row['rest']} of {row['markets']} markets come to rest; the error "
            f"there is {row['error_ratio_at_rest']:.2f} times that under truth "
            f"({row['valid_at_rest']} markets with a valid gradient). {row['cycle']} cycle, "
            f"{row['unsettled']} are unsettled after 30 sweeps; over all {row['valid']} markets "
            f"with valid gradients, settled or not, it is {row['error_ratio']:.2f} times"
        )


def strategic_share(rows):
    for name in values_of(rows, "auction"):
        (none,), (all_,) = of(rows, auction=name, share=0.0), of(rows, auction=name, share=1.0)
        yield (
            f"{name}: with 100% liars instead of 0% the error bound of the true data goes from "
            f"{none['bound_of_data']:.2f} to {all_['bound_of_data']:.2f}, the reported one to "
            f"{all_['error_bound']:.2f}, owners' surplus from {100 * none['surplus_share']:.0f}% "
            f"to {100 * all_['surplus_share']:.0f}% of the money"
        )


def learners(rows):
    last = max(row["rounds_until"] for row in rows)
    for row in of(rows, rounds_until=last):
        sign = "+" if row["advantage"] >= 0 else "-"
        yield (
            f"{row['auction']}, {row['behaviour']}: in the last block of rounds they ask "
            f"{row['asked_factor']:.2f} times the truth and gain {sign}{abs(row['advantage']):.3f} "
            "of the buyer's money over what the truth would earn each alone"
        )


def coalition(rows):
    most = max(row["members"] for row in rows)
    for row in of(rows, members=most):
        yield (
            f"{row['auction']}: {most} owners gain {row['gain_together']:.3f} of what they have to "
            f"sell together, {row['gain_alone']:.3f} if each lies alone"
        )


def false_names(rows):
    most = max(row["names"] for row in rows)
    for row in of(rows, names=most):
        yield (
            f"{row['auction']}: {most} names alone bring {row['gain_names']:+.3f} of the value of "
            f"all she has, a lie under one name {row['gain_lie']:+.3f}, both together "
            f"{row['gain_both']:+.3f}"
        )


def arbitrage(rows):
    fewest = min(row["purchases"] for row in rows)
    for name in values_of(rows, "auction"):
        remember, forget = (
            of(rows, auction=name, purchases=fewest, owners=owners)[0]["spending_ratio"]
            for owners in ("remember", "forget")
        )
        yield (
            f"{name}: {fewest} purchases of the same error cost {remember:.2f} times as much if "
            f"owners remember, {forget:.2f} times if they forget"
        )


def beside(rows, pairs):
    """What accuracies are compared with, as the end of a sentence."""
    parts = []
    for words, column in pairs:
        known = [row[column] for row in rows if row.get(column) == row.get(column)]
        low, high = f"{min(known):.3f}", f"{max(known):.3f}"
        parts.append(f"{words} {low}" + ("" if low == high else f" to {high}"))
    return f" ({'; '.join(parts)})"


def pipelines(rows):
    for market in values_of(rows, "market"):
        here = of(rows, market=market)
        own = [row for row in here if row["pipeline"] != "always the commonest class"]
        listed = "; ".join(f"{row['pipeline']} {interval(row, 'accuracy')}" for row in here)
        noiseless = beside(own, [("without noise it is", "noiseless_accuracy")])
        yield f"{market}: accuracy at the end: {listed}{noiseless}"


def buyers_curve(rows):
    for name in values_of(rows, "pipeline"):
        own = of(rows, pipeline=name)
        parts = []
        for factor in (0.1, 2.0):
            best = None
            for row in of(own, budget_factor=factor):
                best = row if best is None or row["accuracy"] > best["accuracy"] else best
            ends = interval(best, "accuracy")
            parts.append(f"at factor {factor:g} {best['auction']} is best with {ends}")
        columns = [
            ("the constant guess has", "constant_guess"),
            ("without noise it is", "noiseless_accuracy"),
        ]
        yield f"{name}: {', '.join(parts)}{beside(own, columns)}"


def regimes(rows):
    for kappa in (8.0, 4920.0):
        least = None
        for row in of(rows, kappa=kappa):
            median = row["over_everything_median"]
            least = row if least is None or median < least["over_everything_median"] else least
        numbers = [least[f"over_everything_median{end}"] for end in ("", "_low", "_high")]
        yield (
            f"kappa = {kappa:g}: the least median error over that of everything, "
            f"{numbers[0]:.2f} [{numbers[1]:.2f}, {numbers[2]:.2f}], has {least['auction']} with "
            f"{least['rule']}"
        )


def bargains(rows):
    for kappa in (8.0, 80.0):
        (row,) = of(rows, kappa=kappa, group="smallest")
        yield (
            f"kappa = {kappa:g}: first-best buys {100 * row['sold_share']:.0f}% of the privacy of "
            f"the smallest owners, for {100 * row['money_share']:.0f}% of its money"
        )


def second_best(rows):
    whole = [r for r in of(rows, budget_factor="0.1 to 2") if r["auction"] != "first-best"]
    nearest = sorted(whole, key=lambda row: row["over_floor"])[0]
    yield (
        f"kappa = 8: {nearest['auction']} is nearest to the floor, at "
        f"{interval(nearest, 'over_floor')} times; the search may have made the floor "
        f"{100 * nearest['floor_gap']:.1f}% too high"
    )


def error_by_budget(rows):
    for market in values_of(rows, "market"):
        of_rule = of(rows, market=market, rule="opt-aggr")
        means = [
            (mean(row["error_bound"] for row in of(of_rule, auction=name)), name)
            for name in values_of(of_rule, "auction")
            if name != "first-best"
        ]
        order = ", ".join(f"{name} {value:.3g}" for value, name in sorted(means))
        yield f"{market}, opt-aggr, error bound (mean over the budget factors): {order}"


def accuracy(rows):
    for market in values_of(rows, "market"):
        here = sorted(of(rows, market=market, round=100), key=lambda row: -row["accuracy"])
        listed = ", ".join(
            f"{row['auction']} with {row['rule']} {interval(row, 'accuracy')}" for row in here
        )
        yield f"{market}, model sigmoid-logistic, after round 100: {listed}"


def guarantees(rows):
    for row in rows:
        yield (
            f"{row['market']}, {row['auction']} ({row['rule']}): the paper says "
            f"{row['paper_regret']}, the authors' procedure finds {row['as_published']:.3f} on "
            f"these weights, with the axis mended {row['axis_mended']:.3f}, the corrected metric "
            f"{row['corrected']:.3f}, the probe {row['probe']:.3f}"
        )


def levels(rows):
    for market in values_of(rows, "market"):
        (one,), (many,) = of(rows, market=market, levels=1), of(rows, market=market, levels=16)
        measures = {
            "as published": "as_published",
            "axis mended": "axis_mended",
            "corrected metric": "corrected",
            "probe": "probed",
            "IR violation as published": "ir_as_published",
        }
        changes = ", ".join(f"{k} {one[v]:.3g} to {many[v]:.3g}" for k, v in measures.items())
        bought = [f"{100 * row['privacy_bought']:.1f}%" for row in (one, many)]
        yield (
            f"{market}, weights trained here: from M = 1 to M = 16: {changes}; privacy bought "
            f"{' to '.join(bought)}"
        )


def published_regret(rows):
    for name in values_of(rows, "auction"):
        own = of(rows, auction=name)
        yield f"{name}: " + ", ".join(f"{r['measured_by']} {r['gain_over_cost']:.3f}" for r in own)


def cheating(rows):
    for check in values_of(rows, "check"):
        honest, cells, most = 0, 0, None
        for auction in values_of(rows, "auction"):
            for loss in values_of(of(rows, auction=auction, check=check), "privacy_loss"):
                best = None
                for row in of(rows, auction=auction, check=check, privacy_loss=loss):
                    if best is None or row["gain"] > best["gain"]:
                        best = row
                cells += 1
                if best["cheat"] == "honest":
                    honest += 1
                elif most is None or best["gain"] > most["gain"]:
                    most = best
        gains = ""
        if most is not None:
            gain, low, high = (100 * most[f"gain{end}"] for end in ("", "_low", "_high"))
            gains = (
                f"; elsewhere the best cheat gains up to {gain:.0f}% [{low:.0f}%, {high:.0f}%] of "
                "the pay, the largest of several noisy means"
            )
        where = "without a check" if check == "none" else check
        yield f"{where}: honesty is the best response in {honest} of {cells} cells{gains}"


def detection(rows):
    for market in values_of(rows, "market"):
        said = of(rows, market=market, false_accused=0.05)
        parts = []
        for loss in values_of(said, "privacy_loss"):
            best = None
            for row in of(said, privacy_loss=loss):
                best = row if best is None or row["caught"] > best["caught"] else best
            mean, low, high = (100 * best[f"caught{end}"] for end in ("", "_low", "_high"))
            parts.append(
                f"at e = {loss:g} {best['check']} {mean:.0f}% [{low:.0f}%, {high:.0f}%] "
                f"(no test: {100 * best['bound']:.0f}%)"
            )
        yield (f"{market}, 5% of honest messages accused, most cheats caught: " + "; ".join(parts))


def cheat_share(rows):
    most = max(row["share"] for row in rows)
    for cheat in values_of(rows, "cheat"):
        here = of(rows, cheat=cheat, share=most)
        (honest,) = of(rows, cheat=cheat, share=0.0, pipeline=rows[0]["pipeline"])
        listed = "; ".join(f"{row['pipeline']} {interval(row, 'accuracy')}" for row in here)
        yield (
            f"{cheat}, {100 * most:.0f}% of the owners: accuracy {listed} (without cheats "
            f"{honest['pipeline']} has {interval(honest, 'accuracy')})"
        )


AGAIN = {
    "cheat-share": cheat_share,
    "detection": detection,
    "cheating": cheating,
    "misreport-gain": misreport_gain,
    "rest-point": rest_point,
    "strategic-share": strategic_share,
    "learners": learners,
    "coalition": coalition,
    "false-names": false_names,
    "arbitrage": arbitrage,
    "pipelines": pipelines,
    "buyers-curve": buyers_curve,
    "regimes": regimes,
    "bargains": bargains,
    "second-best": second_best,
    "error-by-budget": error_by_budget,
    "accuracy": accuracy,
    "guarantees": guarantees,
    "levels": levels,
    "published-regret": published_regret,
}


@pytest.mark.parametrize("name", CASES)
def test_a_study_says_what_its_rows_allow_and_nothing_else(name):
    for seed in (5, 6):
        finding = conclusion(CASES[name], seed)
        assert finding.sentences == list(AGAIN[name](finding.rows))
