"""Every column is what the rest of the log says, and no two columns can be swapped unnoticed."""

from itertools import combinations, pairwise

import pytest

import flmarket_sim as fm
from flmarket_sim.eventlog import KINDS as ALL_KINDS
from flmarket_sim.eventlog.schema import ENVELOPE
from flmarket_sim.scenario.scenario_file import build_scenario
from tests.eventlog.column_comparison import TYPES, both_columns, differences
from tests.eventlog.log_twin import LogTwin

CHEATING = ("cheat", "verdict", "forfeit")  # tests/market/test_cheats.py has these
KINDS = {kind: columns for kind, columns in ALL_KINDS.items() if kind not in CHEATING}
DELAYS = {"name": "uniform", "low": 0.2, "high": 1.0}
SMALL = {"name": "synthetic", "records": 600, "features": 4, "classes": 3, "test_records": 50}
PAPERS = {  # the paper's release and its reading of the error
    "perturbation": {"name": "laplace"},
    "aggregation": {"name": "opt-aggr", "error": "coordinate"},
}
MARKETS = {
    "liars who teach a model": {
        "rounds": 4,
        "data": SMALL,
        "owners": {
            "count": 24,
            "partition": {"name": "iid", "sigma": 0.8},
            "availability": 0.9,
            "records_per_second": [5.0, 50.0],
            "behaviours": [
                {"name": "scale", "share": 0.15, "factor": 1.4},
                {"name": "shade", "share": 0.15, "privacy_budget": 0.7, "data_size": 0.6},
                {"name": "pretend", "share": 0.15, "family": "sqrt"},
                {"name": "false-names", "share": 0.2, "identities": 2},
                {"name": "tests.eventlog.market_twin:Patron", "share": 0.2},
            ],
        },
        "market": {"bidders": 12, "delay": DELAYS, "counterfactual": True},
        "privacy": {"clip": 0.5},
        "budget": {"factor": [0.4, 0.8]},
        "auction": {"name": "pay-as-bid"},
        "model": {"name": "logistic", "evaluate_every": 3},
        **PAPERS,
    },
    "menus": {
        "rounds": 3,
        "data": SMALL,
        "owners": {"count": 24, "behaviours": [{"name": "scale", "share": 0.4, "factor": 0.3}]},
        "market": {"bidders": 8, "delay": DELAYS, "counterfactual": True},
        "auction": {"name": "seq-price"},
        "model": {"name": "none", "dimension": 40},
    },
    "two buyers and unreliable owners": {
        "rounds": 8,
        "data": SMALL,
        "owners": {
            "count": 24,
            "families": ["linear", "sqrt", "step"],
            "lifetime_budget": 2.5,
            "availability": 0.8,
            "dropout": 0.15,
            "records_per_second": [5.0, 50.0],
        },
        "market": {
            "bidders": 12,
            "delay": DELAYS,
            "bid_deadline": 1.7,
            "decision_deadline": 1.7,
            "gradient_deadline": 5.0,
        },
        "budget": {"factor": [0.4, 1.2]},
        "model": {"name": "none"},
        "buyers": [{"name": "anna"}, {"name": "bert"}],
    },
    "a robust rule, and pay for contributions": {
        "rounds": 3,
        "data": SMALL,
        "owners": {"count": 12, "partition": {"name": "iid", "sigma": 0.8}},
        "market": {"bidders": 6, "delay": DELAYS},
        "privacy": {"clip": 0.5},
        "budget": {"factor": [0.6, 1.2]},
        "robust": {"name": "trimmed-mean", "trim": 0.15},
        "contribution": {"name": "shapley", "pays": "auction"},
        **PAPERS,
    },
}
# pairs of columns that have the same values in every market
SAME = {
    ("gradient", "clipped", "finite"),
    ("round", "time", "ended"),
    ("round", "sender", "receiver"),
    ("update", "sender", "receiver"),
}


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    twins = []
    for number, tables in enumerate(MARKETS.values()):
        scenario = build_scenario(tables)
        run = fm.run(scenario, tmp_path_factory.mktemp("runs") / str(number))
        twins.append(LogTwin(scenario, run.path))
    return dict(zip(MARKETS, twins, strict=True))


@pytest.fixture(scope="module")
def recomputed(twins):
    """(market, kind) -> columns of the log and of the twin, without `seq`."""
    columns = {}
    for market, twin in twins.items():
        for kind in KINDS:
            columns[market, kind] = both_columns(twin, kind)
    return columns


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("market", MARKETS)
def test_every_column_is_what_the_rest_of_the_log_says(market, kind, recomputed):
    assert differences(kind, *recomputed[market, kind]) == []


@pytest.mark.parametrize("kind", KINDS)
def test_two_columns_of_one_type_cannot_be_swapped_unnoticed(kind, recomputed):
    unnoticed = set()
    for one, other in combinations([name for name in TYPES[kind] if name != "seq"], 2):
        if TYPES[kind][one] != TYPES[kind][other]:
            continue
        for market in MARKETS:
            logged, expected = recomputed[market, kind]
            swapped = logged | {one: logged[other], other: logged[one]}
            if differences(kind, swapped, expected):
                break
        else:
            unnoticed.add((kind, one, other))
    assert unnoticed == {pair for pair in SAME if pair[0] == kind}


@pytest.mark.parametrize("market", MARKETS)
def test_events_are_numbered_without_gaps_in_the_order_of_time(market, twins):
    events = sorted(
        (row["seq"], row["time"]) for rows in twins[market].log.values() for row in rows
    )
    assert [seq for seq, _ in events] == list(range(1, len(events) + 1))
    assert all(before <= after for (_, before), (_, after) in pairwise(events))


def test_every_kind_and_every_code_happens_in_one_of_the_markets(twins):
    for kind, columns in KINDS.items():
        rows = [row for twin in twins.values() for row in twin.log[kind]]
        assert rows, kind
        for column in (*ENVELOPE, *columns):
            if column.names and column.name != "family":
                missing = set(column.names) - {row[column.name] for row in rows}
                assert not missing, f"{kind}.{column.name}: {missing}"
            assert any(row[column.name] is not None for row in rows), f"{kind}.{column.name}"


@pytest.mark.parametrize("market", MARKETS)
def test_the_ledger_is_what_the_log_adds_up_to(market, twins):
    twin = twins[market]
    for row, wanted in zip(twin.ledger, twin.expected_ledger(), strict=True):
        assert row == pytest.approx(wanted, abs=1e-12)
