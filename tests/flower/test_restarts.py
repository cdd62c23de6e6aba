"""A server that is killed continues: no event and no payment is lost or happens twice."""

import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.eventlog import ParquetLog
from flmarket_sim.eventlog.run import Run
from flmarket_sim.flower import server_market
from flmarket_sim.flower.inbox import StoredInbox
from flmarket_sim.flower.own_ledger import OwnLedger
from flmarket_sim.flower.server_market import Settings, serve
from flmarket_sim.market import provenance
from tests.flower.small_markets import BROKER_SEES, OWNERS, grid_of, held, seen, small
from tests.support.forked import KILLED, die, exit_code
from tests.support.loopback_grid import KilledError

MARKET = {"rounds": 2, "owners__count": 4, "market__bidders": 3}


def earnings(folder):
    """What each owner has sold and earned, by her own ledger."""
    return [OwnLedger(folder / f"owner-{n}", None).totals() for n in range(4)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A run without a kill, and how many calls of the Grid it took."""
    folder = tmp_path_factory.mktemp("undisturbed")
    scenario = small(**MARKET)
    grid, _ = grid_of(scenario, folder / "owners")
    run = serve(scenario, folder / "run", grid, Settings(drawn=True))
    return run, earnings(folder / "owners"), grid.calls


def assert_the_same(run, folder, undisturbed):
    whole, earned, _ = undisturbed
    for kind in BROKER_SEES:
        assert seen(run, kind) == seen(whole, kind), kind
    assert run.ledger.to_pylist() == whole.ledger.to_pylist()
    assert earnings(folder) == earned
    numbers = sorted(
        row["seq"] for kind in run.info["log"]["kinds"] for row in run.events(kind).to_pylist()
    )
    assert numbers == list(range(1, run.info["log"]["events"] + 1))


def killed_at(kill_at, scenario, folder):
    """Holds a market in a process that is killed at a call of the Grid."""

    def hold():
        grid, _ = grid_of(scenario, folder / "owners", kill_at=kill_at, kill=die)
        serve(scenario, folder / "run", grid, Settings(drawn=True))

    assert exit_code(hold) == KILLED


def continued(scenario, folder):
    grid, _ = grid_of(scenario, folder / "owners")
    return serve(scenario, folder / "run", grid, Settings(drawn=True))


def test_a_kill_at_any_call_of_the_grid_changes_nothing(undisturbed, tmp_path):
    scenario, calls = small(**MARKET), undisturbed[2]
    assert calls > 20
    for kill_at in (*range(1, calls, 4), calls - 2, calls):
        folder = tmp_path / str(kill_at)
        killed_at(kill_at, scenario, folder)
        assert Run(folder / "run").info["outcome"] == "running"  # nobody could say how it ended
        assert_the_same(continued(scenario, folder), folder / "owners", undisturbed)


def test_a_failure_at_any_call_of_the_grid_changes_nothing(undisturbed, tmp_path):
    """The server has the time to say that it failed."""
    scenario, calls = small(**MARKET), undisturbed[2]
    for kill_at in range(3, calls, 8):
        folder = tmp_path / str(kill_at)
        grid, _ = grid_of(scenario, folder / "owners", kill_at=kill_at)
        with pytest.raises(KilledError):
            serve(scenario, folder / "run", grid, Settings(drawn=True))
        assert Run(folder / "run").info["outcome"] == "failed"
        assert_the_same(continued(scenario, folder), folder / "owners", undisturbed)


WRITES = [  # one after the other; a kill may come before each of them
    (StoredInbox, "add"),
    (StoredInbox, "begin"),
    (ParquetLog, "note"),
    (server_market, "write_checkpoint"),
    (OwnLedger, "keep"),
    (OwnLedger, "sell"),
    (OwnLedger, "earn"),
]


def test_a_kill_at_any_write_changes_nothing(undisturbed, tmp_path, monkeypatch):
    """Server and owners are one process here, so both are killed."""
    scenario, calls, kill_at = small(**MARKET), 0, None

    def killing(original):
        def call(*arguments, **options):
            nonlocal calls
            calls += 1
            if calls == kill_at:
                die()
            return original(*arguments, **options)

        return call

    for place, name in WRITES:
        monkeypatch.setattr(place, name, killing(getattr(place, name)))
    held(scenario, tmp_path / "counted")
    writes = calls
    assert writes > 40
    for place in range(2, writes + 1, 6):
        folder, kill_at, calls = tmp_path / str(place), place, 0
        assert exit_code(lambda folder=folder: held(scenario, folder)) == KILLED
        kill_at = None
        assert_the_same(continued(scenario, folder), folder / "owners", undisturbed)


def test_a_torn_last_line_of_the_inbox_counts_as_never_written(undisturbed, tmp_path):
    scenario = small(**MARKET)
    grid, _ = grid_of(scenario, tmp_path / "owners", kill_at=undisturbed[2] // 2)
    with pytest.raises(KilledError):
        serve(scenario, tmp_path / "run", grid, Settings(drawn=True))
    inbox = tmp_path / "run" / "inbox.log"
    inbox.write_bytes(inbox.read_bytes()[:-7])
    again, _ = grid_of(scenario, tmp_path / "owners")
    run = serve(scenario, tmp_path / "run", again, Settings(drawn=True))
    assert_the_same(run, tmp_path / "owners", undisturbed)


def test_clients_that_restart_with_the_server_keep_their_promises(tmp_path):
    """The server ends after the auction, and everybody comes back as another node."""
    scenario = small(rounds=2, owners__lifetime_budget=6.0)
    whole = held(scenario, tmp_path / "whole")
    grid, _ = grid_of(scenario, tmp_path / "owners", kill_at="train.sell")
    with pytest.raises(KilledError):
        serve(scenario, tmp_path / "run", grid, Settings(drawn=True))
    again, _ = grid_of(scenario, tmp_path / "owners")
    again.settings = {node + 100: one for node, one in again.settings.items()}
    run = serve(scenario, tmp_path / "run", again, Settings(drawn=True))
    for kind in BROKER_SEES:
        assert seen(run, kind) == seen(whole, kind), kind
    for number in range(OWNERS):
        totals = OwnLedger(tmp_path / "owners" / f"owner-{number}", None).totals()
        assert totals.privacy_sold <= 6.0 * (1 + 1e-9)


def test_a_finished_run_is_not_held_again(tmp_path):
    scenario = small(rounds=1)
    held(scenario, tmp_path)
    grid, _ = grid_of(scenario, tmp_path / "owners")
    run = serve(scenario, tmp_path / "run", grid, Settings(drawn=True))
    assert not grid.sent and isinstance(run, Run)


@pytest.mark.parametrize("kill_at", ["train.sell", "query.settle"])
def test_a_server_with_other_libraries_does_not_go_on(kill_at, tmp_path, monkeypatch):
    """Neither in the first round, before there is a checkpoint, nor later."""
    scenario = small(**MARKET)
    grid, _ = grid_of(scenario, tmp_path / "owners", kill_at=kill_at)
    with pytest.raises(KilledError):
        serve(scenario, tmp_path / "run", grid, Settings(drawn=True))
    assert (tmp_path / "run" / "checkpoint.npz").exists() == (kill_at == "query.settle")
    known = provenance.versions()
    monkeypatch.setattr(provenance, "versions", lambda: known | {"numpy": "0.9"})
    again, _ = grid_of(scenario, tmp_path / "owners")
    with pytest.raises(InputError, match=r"was begun with numpy .* \(now 0\.9\)"):
        serve(scenario, tmp_path / "run", again, Settings(drawn=True))


def test_a_server_whose_own_data_have_changed_does_not_go_on(tmp_path):
    rows = [f"{n / 100},{n % 7},{n % 2}" for n in range(200)]
    table = tmp_path / "own.csv"
    table.write_text("\n".join(["a,b,label", *rows]))
    scenario = small(**MARKET, data={"name": "csv", "path": str(table), "label": "label"})
    grid, _ = grid_of(scenario, tmp_path / "owners", kill_at="train.sell")
    with pytest.raises(KilledError):
        serve(scenario, tmp_path / "run", grid, Settings(drawn=True))
    table.write_text("\n".join(["a,b,label", *reversed(rows)]))
    again, _ = grid_of(scenario, tmp_path / "owners")
    with pytest.raises(InputError, match="has changed since"):
        serve(scenario, tmp_path / "run", again, Settings(drawn=True))
