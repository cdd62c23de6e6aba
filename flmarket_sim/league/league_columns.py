"""The columns of the league: what each is, why it is there, and which way is better."""

from __future__ import annotations

from typing import Literal, NamedTuple

Better = Literal["low", "high", ""]


class LeagueColumn(NamedTuple):
    """A column: its name in tables, its meaning, why a mechanism is judged by it.

    Over the card it is the mean of the markets. For a `ratio` of errors it is the geometric mean,
    so that no single market decides it.
    """

    name: str
    meaning: str
    why: str
    better: Better = "low"
    interval: bool = False
    ratio: bool = False


COLUMNS = (
    LeagueColumn(
        "over_floor",
        "mean error over the mean of the second-best floor, in the same markets",
        "no truthful mechanism can be below one, so this says what is left to gain",
        interval=True,
        ratio=True,
    ),
    LeagueColumn(
        "over_first_best",
        "mean error over that of the best purchase at true valuations",
        "the floor holds for truthful mechanisms; this is the distance for all",
        interval=True,
        ratio=True,
    ),
    LeagueColumn(
        "invalid",
        "share of markets in which nobody sells, so that there is no gradient",
        "a mean over valid markets would hide them",
    ),
    LeagueColumn(
        "spent",
        "mean share of the budget that is paid",
        "two errors are comparable at equal money only",
        "",
        interval=True,
    ),
    LeagueColumn(
        "surplus",
        "mean sum of what owners are paid above their true cost, as a share of the budget",
        "it is what the mechanism leaves to the sellers",
        "",
        interval=True,
    ),
    LeagueColumn(
        "underpaid",
        "sum of what underpaid owners miss of their true costs, as a share of the costs of all "
        "owners; what others get above theirs does not count against it",
        "an owner who is underpaid leaves the market",
    ),
    LeagueColumn(
        "underpaid_owners",
        "share of the sellers who are paid less than their true cost",
        "the same sum can be missed by a few or by all",
    ),
    LeagueColumn(
        "gain",
        "sum of what the best misreports that the probe finds gain, as a share of all cost",
        "truthfulness is a claim until somebody tries",
        interval=True,
    ),
    LeagueColumn(
        "gaining",
        "share of owners who gain more than one percent of their cost by a misreport",
        "a mean of a few large gains reads differently",
    ),
    LeagueColumn(
        "names_gain",
        "what an owner gains by a second name above the best lie under one, as a share of all that "
        "she has",
        "names are free, and few mechanisms are proof against them",
        interval=True,
    ),
    LeagueColumn(
        "coalition_gain",
        "gain of three owners who report as one (of two in a market of three), as a share of all "
        "that they have",
        "owners talk to each other",
        interval=True,
    ),
    LeagueColumn(
        "rest_error",
        "error after ten rounds in which owners answer each other's lies and decline what "
        "underpays them, over that under truth, where everybody sells what she is asked to",
        "a lie matters to the buyer through the error that it leaves her with",
        interval=True,
        ratio=True,
    ),
    LeagueColumn(
        "resting",
        "share of these markets in which nobody gains by another lie after at most ten rounds",
        "the error of a market that does not rest is that of its tenth round",
        "high",
    ),
    LeagueColumn(
        "invalid_at_rest",
        "share of these markets in which nobody sells at the end",
        "a mean over valid markets would hide them",
    ),
    LeagueColumn(
        "accuracy",
        "test accuracy of the model that the market trains",
        "the error bound is a means; a model is the end",
        "high",
        interval=True,
    ),
    LeagueColumn(
        "milliseconds",
        "time of one decision on the machine that played",
        "a mechanism of seconds cannot serve a round of a thousand buyers",
    ),
)
ENDS = ("", "_low", "_high")
NAMES = tuple(
    column.name + end for column in COLUMNS for end in (ENDS if column.interval else ("",))
)
