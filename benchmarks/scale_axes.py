"""The axes of `scale`, the sides of each axis, and the cases of each side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Case = dict[str, Any]


@dataclass(frozen=True)
class Side:
    """An implementation, and the sizes at which it is measured."""

    name: str
    sizes: tuple[int, ...]
    case: Callable[[int], Case]


@dataclass(frozen=True)
class Axis:
    name: str
    title: str
    label: str
    setting: str
    sides: tuple[Side, ...]


def table(
    owners: int, bidders: int, rounds: int, records: int, model: dict[str, Any], **data: int
) -> dict[str, Any]:
    return {
        "rounds": rounds,
        "data": {"name": "synthetic", "records": records, "features": 10, "test_records": 200}
        | data,
        "owners": {"count": owners, "partition": {"name": "iid", "sigma": 1.0, "minimum": 5}},
        "market": {"bidders": bidders},
        "model": {"evaluate_every": 10**6} | model,
    }


NONE, LOGISTIC = {"name": "none"}, {"name": "logistic"}


def market(of: dict[str, Any], *former: str) -> Case:
    return {"kind": "market", "of": of, "former": list(former)}


def authors(of: dict[str, Any]) -> Case:
    return {"kind": "authors", "of": of}


def _owners(model: dict[str, Any], *former: str) -> Callable[[int], Case]:
    return lambda n: market(table(n, 10, 10, 10 * n, model), *former)


def _bidders(model: dict[str, Any]) -> Callable[[int], dict[str, Any]]:
    return lambda n: table(100_000, n, 2, 1_000_000, model)


def _rounds(model: dict[str, Any]) -> Callable[[int], dict[str, Any]]:
    return lambda n: table(1000, 10, n, 20_000, model)


def _parameters(n: int) -> dict[str, Any]:
    """A market of 40 bidders with 20 records each, and a hidden layer of 25 parameters a unit."""
    model = {"name": "benchmarks.models:Wide", "hidden": n // 25}
    return table(40, 40, 2, 800, model, features=20) | {
        "owners": {"count": 40, "partition": {"name": "shards"}},
        "budget": {"factor": [0.5, 0.5]},
    }


AXES = (
    Axis(
        "owners", "Owners", "owners in the population",
        "10 bidders a round, 10 rounds, 10 records an owner (of 10 features where something is "
        "learned). Time includes drawing the population and writing owners and ledger. "
        "The authors' way takes its population from us: there is nothing of theirs to measure.",
        (
            Side("no learning", (10**3, 10**4, 10**5, 10**6), _owners(NONE)),
            Side("logistic regression", (10**3, 10**4, 10**5, 10**6), _owners(LOGISTIC)),
            Side(
                "no learning, before: all records dealt at once", (10**5, 10**6),
                _owners(NONE, "records_dealt_at_once"),
            ),
        ),
    ),
    Axis(
        "bidders", "Bidders a round", "bidders a round",
        "100,000 owners, 2 rounds, `all-in-critical`, `opt-aggr`. The authors' way (a cvxpylayers "
        "problem and a model copy for each winner) is measured where a turn ends within the "
        "time limit.",
        (
            Side(
                "no learning", (10, 100, 10**3, 10**4, 10**5),
                lambda n: market(_bidders(NONE)(n)),
            ),
            Side(
                "logistic regression", (10, 100, 300, 10**3, 10**4),
                lambda n: market(_bidders(LOGISTIC)(n)),
            ),
            Side("the authors' way", (10, 100, 300), lambda n: authors(_bidders(LOGISTIC)(n))),
        ),
    ),
    Axis(
        "giant", "Bidders beside a giant", "bidders",
        "`all-in-critical` alone, one auction: one owner has half of all records, asks for more "
        "than there is, and everybody after her is looked at again. Before, every "
        "winner walked past all of them.",
        (
            Side(
                "all-in-critical", (10**3, 3 * 10**3, 10**4, 3 * 10**4, 10**5),
                lambda n: {"kind": "auction", "of": n},
            ),
            Side(
                "before: every walk taken", (10**3, 3 * 10**3, 10**4, 3 * 10**4),
                lambda n: {"kind": "auction", "of": n, "former": ["walks"]},
            ),
        ),
    ),
    Axis(
        "rounds", "Rounds", "rounds",
        "1,000 owners, 10 bidders a round. Events wait in memory until enough of them have come "
        "together to be written, so memory grows with the first thousands of rounds.",
        (
            Side("no learning", (10, 100, 10**3, 10**4), lambda n: market(_rounds(NONE)(n))),
            Side("logistic regression", (10, 100, 10**3), lambda n: market(_rounds(LOGISTIC)(n))),
            Side("the authors' way", (10, 100), lambda n: authors(_rounds(LOGISTIC)(n))),
        ),
    ),
    Axis(
        "parameters", "Parameters of the model", "parameters",
        "40 owners of 20 records, all asked, 2 rounds, a hidden layer in torch; evaluated once, on "
        "200 records. The market computes the gradients of all bidders, in double precision, for "
        "the true error in its log; the authors' way those of the winners, in single.",
        (
            Side("this package", (10**3, 10**4, 10**5, 10**6), lambda n: market(_parameters(n))),
            Side(
                "before: more copies", (10**5, 10**6),
                lambda n: market(_parameters(n), "copies_of_gradients"),
            ),
            Side(
                "the authors' way", (10**3, 10**4, 10**5, 10**6), lambda n: authors(_parameters(n))
            ),
        ),
    ),
)  # fmt: skip
