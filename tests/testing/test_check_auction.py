"""An audit catches what is broken, lets pass what is sound, and shows it in a market that can be
read."""

import json

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.cli import main
from flmarket_sim.errors import InputError
from flmarket_sim.experiments.engine import results_of
from flmarket_sim.studies.auction_audit_tasks import AuditInTasks, check_property
from flmarket_sim.testing import (
    CheckFailed,
    Verdict,
    check_auction,
    check_valuation,
    trial_markets,
    trial_valuations,
)
from flmarket_sim.testing.auction_audit import promised_by
from flmarket_sim.testing.violating_market import RelativeMisreport, ViolatingMarket

from . import broken

CLASSICAL = [
    "all-in-critical",
    "proportional-share",
    "clock",
    "posted-price",
    "fair-query",
    "pay-as-bid",
    "gravin-3",
    "gravin-2",
]
LEARNED = ["dm-regretnet", "m-regretnet", "regretnet"]


@pytest.fixture(scope="module")
def all_in():
    return check_auction("all-in", raise_on_failure=False)


@pytest.mark.parametrize(
    "mechanism", [broken.EqualOffers, broken.LotteryWithExpected], ids=lambda m: m.name
)
def test_a_sound_mechanism_passes(mechanism):
    report = check_auction(mechanism, markets=20)
    assert report.passed and not report.refuted
    assert {v.outcome for v in report.verdicts} <= {"holds", "holds here", "fails", "not checked"}


def test_a_sound_lottery_is_not_refuted_by_chance():
    assert check_auction(
        broken.Lottery, markets=10, only=["monotone", "anonymous", "individually_rational"]
    ).passed
    assert (
        check_auction(broken.Lottery, markets=10, only=["truthful"])
        .verdict("truthful", "single-minded")
        .held
    )


@pytest.mark.parametrize(
    ("mechanism", "name"), broken.BROKEN.items(), ids=[m.name for m in broken.BROKEN]
)
def test_every_check_fails_on_a_mechanism_broken_on_purpose(mechanism, name):
    with pytest.raises(CheckFailed) as told:
        check_auction(mechanism, markets=15, only=[name])
    assert isinstance(told.value, AssertionError)
    assert str(told.value).startswith(f"{mechanism.name}: refuted: {name}")
    refuted = told.value.report.refuted
    assert {verdict.name for verdict in refuted} == {name}
    for verdict in refuted:
        if (
            verdict.counterexample is None
        ):  # nothing about a market, or changed by the first look at it
            assert mechanism in (broken.Vague, broken.Meddles) and verdict.note
        else:
            assert verdict.counterexample.case.n <= 3
            assert verdict.counterexample.replay(mechanism()) > 0


def test_most_broken_mechanisms_break_nothing_else():
    for mechanism in (
        broken.Neighbourly,
        broken.WrongExpected,
        broken.Overspends,
        broken.TooProud,
        broken.FirstServed,
    ):
        report = check_auction(mechanism, markets=10, raise_on_failure=False)
        assert {verdict.name for verdict in report.refuted} == {broken.BROKEN[mechanism]}


def test_what_cannot_be_tried_is_not_called_sound():
    report = check_auction(broken.OwnDice, markets=10, raise_on_failure=False)
    assert (
        report.verdict("truthful", "any").outcome == "not checked"
        and report.verdict("contract").outcome == "holds"
    )


@pytest.mark.parametrize("name", CLASSICAL)
def test_classical_auctions_do_what_they_declare(name):
    report = check_auction(name, markets=20)
    for owners in ("single-minded", "any"):
        assert report.verdict("individually_rational", owners).outcome == "holds"
        assert report.verdict("monotone", owners).held


@pytest.mark.parametrize("name", ["agn", "greedy-ii", "random-sample"])
def test_procurement_auctions_do_what_they_declare(name):
    """Promises to truthful owners are tried by tests/auctions/procurement: draws take time here."""
    only = ["contract", "deterministic", "draws", "batch", "budget_feasible"]
    report = check_auction(name, markets=10, only=[*only, "individually_rational"])
    assert report.passed and report.verdict("budget_feasible", "any").held
    rational = report.verdict("individually_rational", "single-minded")
    assert rational.held == (name != "agn")


@pytest.mark.parametrize("name", LEARNED)
def test_learned_auctions_do_what_they_declare(name):
    """They promise nothing but what the contract asks: only that is tried here."""
    report = check_auction(name, markets=10, only=["draws", "batch", "expected", "budget_feasible"])
    assert report.verdict("budget_feasible", "any").held and report.verdict("expected").held
    assert report.sizes == (1, 2, 3, 5, 10)


def test_all_in_is_caught_by_the_claim_of_its_paper(all_in):
    assert not all_in.passed and [(v.name, v.owners, v.promised) for v in all_in.refuted] == [
        ("truthful", "single-minded", "claim")
    ]
    example = all_in.refuted[0].counterexample
    assert example.case.n <= 4
    assert example.replay(fm.auctions.create("all-in")) == pytest.approx(example.violation)
    assert example.replay(fm.auctions.create("all-in-critical")) == 0
    assert (
        "earns" in str(example) and "Owner" in str(example) and len(str(example).splitlines()) <= 7
    )


@pytest.mark.parametrize("size", ["certified", "reported"])
def test_seq_price_keeps_all_that_it_promises_to_everybody(size):
    report = check_auction(fm.auctions.create("seq-price", size=size), markets=12)
    for promise in ("truthful", "individually_rational", "budget_feasible"):
        assert report.verdict(promise, "any").held and report.verdict(promise, "single-minded").held


def test_only_valuations_of_no_family_show_that_a_table_is_rounded_up(monkeypatch):
    refuted = check_auction(broken.RoundsUp, markets=15, only=["truthful"], raise_on_failure=False)
    assert refuted.verdict("truthful", "any").worst > 0.01
    monkeypatch.setattr(trial_markets, "OTHERS", 0.0)
    assert check_auction(broken.RoundsUp, markets=15, only=["truthful"]).passed


@pytest.mark.parametrize("name", trial_valuations.TRIAL_VALUATIONS)
def test_the_valuations_of_the_trial_markets_are_valuations(name):
    check_valuation(name)


@pytest.mark.parametrize("name", ["all-in-critical", "proportional-share"])
def test_repaired_auctions_pass_for_the_single_minded_and_others_can_still_gain(name):
    report = check_auction(name)
    assert report.verdict("truthful", "single-minded").outcome == "holds"
    other = report.verdict("truthful", "any")
    assert (
        other.outcome == "fails"
        and other.mean > 0.1
        and other.counterexample.replay(fm.auctions.create(name)) > 0.1
    )
    assert (
        "Not promised, and it does not hold" in other.sentence()
        and "on average" in other.sentence()
    )


def test_the_example_of_the_theory_is_a_case(all_in):
    truth = fm.Profiles([["step"] * 3], [[1.0, 1.0, 1.05]], [[1.0] * 3], [[1.0, 9.0, 1.0]])
    case = ViolatingMarket(truth, 10.0, levels=1, owner=2, misreport=RelativeMisreport((0.0,)))
    check = all_in.refuted[0].counterexample.check
    judgement = check.judge(_subject("all-in"), case)
    assert judgement.violation == pytest.approx(3.95 / 1.05)
    assert check.judge(_subject("all-in-critical"), case).violation == 0


def test_a_promise_for_any_owner_covers_the_single_minded():
    said = broken.EqualOffers()
    assert promised_by(said, "individually_rational", "single-minded") == "guarantee"
    assert (
        promised_by(said, "truthful", "any") == ""
        and promised_by(fm.auctions.create("all-in"), "truthful", "any") == ""
    )
    assert promised_by(said, "budget_feasible", "any") == "contract"


def test_the_same_seed_gives_the_same_report(all_in):
    assert check_auction("all-in", raise_on_failure=False).as_dict() == all_in.as_dict()


@pytest.mark.parametrize(
    "mechanism",
    ["all-in", *(f"{broken.__name__}:{n}" for n in ("Remembers", "LotteryWithExpected"))],
)
def test_checks_as_tasks_of_the_engine_give_the_same_report(mechanism):
    audit = AuditInTasks(mechanism, "quick", 1, 5)
    assert len({task.key for task in audit.tasks}) == len(audit.tasks)
    report = audit.report(results_of(audit.tasks, check_property))
    serial = check_auction(mechanism, seed=1, markets=5, raise_on_failure=False)
    assert report.as_dict() == serial.as_dict() and str(report) == str(serial)


@pytest.mark.parametrize("name", ["batch", "anonymous", "truthful"])
def test_a_verdict_survives_as_plain_data(name):
    mechanism = next(mechanism for mechanism, what in broken.BROKEN.items() if what == name)
    report = check_auction(mechanism, markets=5, only=[name], raise_on_failure=False)
    for verdict in report.refuted:
        example = verdict.counterexample
        again = Verdict.from_dict(json.loads(json.dumps(verdict.as_dict())), example.check)
        assert again.as_dict() == verdict.as_dict() and again.sentence() == verdict.sentence()
        assert str(again.counterexample) == str(example)
        assert again.counterexample.replay(mechanism()) == example.replay(mechanism()) > 0


def test_wrong_requests_are_refused():
    for wrong in ({"effort": "heroic"}, {"markets": 2}, {"only": ["truthfull"]}):
        with pytest.raises(InputError):
            check_auction("all-in", **wrong)


def test_the_command_says_what_was_found(capsys, monkeypatch):
    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["flmarket", "audit", *arguments, "--workers", "1"])
        with pytest.raises(SystemExit) as ending:
            main()
        return ending.value.code, capsys.readouterr()

    code, told = run("all-in", "--markets", "40")
    assert (
        code == 1
        and "refuted" in told.out
        and "claimed" in told.out
        and "The buyer has" in told.out
    )
    code, told = run("all-in-critical", "--markets", "10", "--json")
    report = json.loads(told.out)
    assert code == 0 and report["passed"] and report["auction"] == "all-in-critical"
    example = next(
        v for v in report["verdicts"] if (v["name"], v["owners"]) == ("truthful", "any")
    )["counterexample"]
    owners = {key: [[owner[key] for owner in example["owners"]]] for key in example["owners"][0]}
    assert fm.Profiles(**owners).total_value()[0] > 0 and np.isfinite(
        example["told"]["privacy_budget"]
    )
    code, told = run("all-in", "--effort", "heroic")
    assert code == 2 and "effort" in told.err
    code, told = run("no-auction")
    assert code == 2 and told.out == ""


def _subject(name):
    from flmarket_sim.testing.auction_under_test import AuctionUnderTest

    return AuctionUnderTest(fm.auctions.create(name))
