"""An interrupt waits for the end of a round, but not for long, and the run can be resumed."""

import signal
import threading

import pytest

import flmarket_sim as fm
from benchmarks.kills import fingerprint
from flmarket_sim.eventlog import parquet_log
from flmarket_sim.market import checkpoint, interrupts, sale_in_turn, simulation
from flmarket_sim.scenario.scenario_file import build_scenario

SMALL = {
    "rounds": 4,
    "data": {"name": "synthetic", "records": 400},
    "owners": {"count": 20},
    "market": {"bidders": 10},
    "model": {"name": "none"},
}


HANGUP = getattr(signal, "SIGHUP", signal.SIGTERM)  # the end of a terminal, where there is one


@pytest.fixture
def as_the_command_line():
    before = signal.signal(HANGUP, signal.default_int_handler)
    yield
    signal.signal(HANGUP, before)


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr(parquet_log, "JOURNAL_SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", 1e9)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, HANGUP])
def test_a_round_that_does_not_end_is_left_and_done_again(
    tmp_path, often, monkeypatch, number, as_the_command_line
):
    scenario = build_scenario(SMALL | {"auction": {"name": "seq-price"}})
    whole = fm.run(scenario, tmp_path / "whole").path
    offers, log_offer = iter(range(1_000)), sale_in_turn._log_offer

    def log_and_never_end(*arguments):
        log_offer(*arguments)
        if next(offers) == 23:  # in the middle of the third round
            signal.raise_signal(number)
            while True:
                pass

    monkeypatch.setattr(interrupts, "PATIENCE", 0.0)
    with monkeypatch.context() as patched:
        patched.setattr(sale_in_turn, "_log_offer", log_and_never_end)
        with pytest.raises(KeyboardInterrupt):
            fm.run(scenario, tmp_path / "run")
    assert fm.read_run(tmp_path / "run")["outcome"] == "interrupted"
    assert fm.read_events(tmp_path / "run", "round").num_rows == 2
    assert checkpoint.read_checkpoint(tmp_path / "run").facts.rounds == [2]
    fm.resume(tmp_path / "run")
    assert fingerprint(tmp_path / "run") == fingerprint(whole)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no such signal")
def test_the_end_of_a_terminal_is_heard_where_the_command_line_hears_it():
    for handler, heard in ((signal.SIG_IGN, False), (signal.default_int_handler, True)):
        before = signal.signal(HANGUP, handler)
        try:
            with interrupts.interrupts_between_rounds():
                assert (signal.getsignal(HANGUP) is not handler) == heard
            assert signal.getsignal(HANGUP) is handler
        finally:
            signal.signal(HANGUP, before)


def test_an_interrupt_in_a_short_round_waits_for_its_end(tmp_path, often, monkeypatch):
    monkeypatch.setattr(interrupts, "PATIENCE", 3_600.0)
    offers, log_offer = iter(range(1_000)), sale_in_turn._log_offer

    def log_and_signal(*arguments):
        log_offer(*arguments)
        if next(offers) == 13:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(sale_in_turn, "_log_offer", log_and_signal)
    with pytest.raises(KeyboardInterrupt):
        fm.run(build_scenario(SMALL | {"auction": {"name": "seq-price"}}), tmp_path / "run")
    assert checkpoint.read_checkpoint(tmp_path / "run").facts.rounds == [2]
    assert not [one for one in threading.enumerate() if isinstance(one, threading.Timer)]


def test_an_interrupt_after_the_last_round_is_not_lost(monkeypatch):
    """A sweep of one-round markets would otherwise never hear of it."""
    run_events = simulation.run_events

    def all_events_and_a_signal(*arguments):
        run_events(*arguments)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(simulation, "run_events", all_events_and_a_signal)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        simulation.rounds_only(build_scenario(SMALL))
    assert signal.getsignal(signal.SIGINT) is before


def test_a_run_outside_of_the_main_thread_leaves_signals_alone():
    found, before = [], signal.getsignal(signal.SIGINT)
    work = threading.Thread(
        target=lambda: found.extend(simulation.rounds_only(build_scenario(SMALL)))
    )
    work.start()
    work.join()
    assert len(found) == 4 and signal.getsignal(signal.SIGINT) is before
