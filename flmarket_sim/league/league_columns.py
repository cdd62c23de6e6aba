"""The columns of the league: what each is, why it is there, and which way is better."""

from __future__ import annotations

from typing import Literal, NamedTuple

Better = Literal["low", "high", ""]


class Column(NamedTuple):
    """A column: its name in tables, its meaning, why a mechanism is judged by it."""

    name: str
    meaning: str
    why: str
    better: Better = "low"
    interval: bool = False


COLUMNS = (
    Column(
        "over_floor",
        "mean error over the mean of the second-best floor, in the same markets",
        "no truthful mechanism can be below one, so this says what is left to gain",
        interval=True,
    ),
    Column(
        "over_first_best",
        "mean error over that of the best purchase at true valuations",
        "the floor holds for truthful mechanisms; this is the distance for all",
        interval=True,
    ),
    Column(
        "invalid",
        "share of markets in which nobody sells, so that there is no gradient",
        "a mean over valid markets would hide them",
    ),
    Column(
        "spent",
        "mean share of the budget that is paid",
        "two errors are comparable at equal money only",
        "",
        interval=True,
    ),
    Column(
        "surplus",
        "mean sum of what owners are paid above their true cost, as a share of the budget",
        "it is what the mechanism leaves to the sellers",
        "",
        interval=True,
    ),
    Column(
        "underpaid",
        "sum of what owners are paid below their true cost, as a share of all cost",
        "an owner who is underpaid leaves the market",
    ),
    Column(
        "gain",
        "sum of what the best misreports that the probe finds gain, as a share of all cost",
        "truthfulness is a claim until somebody tries",
        interval=True,
    ),
    Column(
        "gaining",
        "share of owners who gain more than one percent of their cost by a misreport",
        "a mean of a few large gains reads differently",
    ),
    Column(
        "names_gain",
        "gain of an owner under two names, with or without a lie, as a share of all that she has",
        "names are free, and few mechanisms are proof against them",
        interval=True,
    ),
    Column(
        "coalition_gain",
        "gain of three owners who report as one (of two in a market of three), as a share of all "
        "that they have",
        "owners talk to each other",
        interval=True,
    ),
    Column(
        "rest_error",
        "error where owners who answer each other's lies end, over that under truth",
        "a lie matters to the buyer through the error that it leaves her with",
        interval=True,
    ),
    Column(
        "accuracy",
        "test accuracy of the model that the market trains",
        "the error bound is a means; a model is the end",
        "high",
        interval=True,
    ),
    Column(
        "milliseconds",
        "time of one decision on the machine that played",
        "a mechanism of seconds cannot serve a round of a thousand buyers",
    ),
)
NAMES = tuple(column.name for column in COLUMNS)
