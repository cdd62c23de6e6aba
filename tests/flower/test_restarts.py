"""A server that is killed continues: no event and no payment is lost or happens twice."""

import pytest

from flmarket_sim.eventlog.run import Run
from flmarket_sim.flower import server_market
from flmarket_sim.flower.own_ledger import OwnLedger
from flmarket_sim.flower.server_market import Settings, serve
from tests.flower.small_markets import BROKER_SEES, OWNERS, grid_of, held, seen, small
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


def test_a_kill_at_any_call_of_the_grid_changes_nothing(undisturbed, tmp_path):
    scenario, calls = small(**MARKET), undisturbed[2]
    assert calls > 20
    for kill_at in (*range(1, calls, 4), calls - 2, calls):
        folder = tmp_path / str(kill_at)
        grid, _ = grid_of(scenario, folder / "owners", kill_at=kill_at)
        with pytest.raises(KilledError):
            serve(scenario, folder / "run", grid, Settings(drawn=True))
        again, _ = grid_of(scenario, folder / "owners")
        run = serve(scenario, folder / "run", again, Settings(drawn=True))
        assert_the_same(run, folder / "owners", undisturbed)


def test_a_kill_at_any_write_changes_nothing(undisturbed, tmp_path, monkeypatch):
    """The inbox, the journal and the checkpoint are written one after the other; a kill may come
    before each of them."""
    scenario = small(**MARKET)
    patched = [
        ("flmarket_sim.flower.inbox.Inbox", "add"),
        ("flmarket_sim.flower.inbox.Inbox", "begin"),
        ("flmarket_sim.eventlog.parquet_log.ParquetLog", "note"),
        ("flmarket_sim.flower.server_market", "write_checkpoint"),
    ]
    kill_at, calls = None, 0

    def killing(original):
        def call(*arguments, **options):
            nonlocal calls
            calls += 1
            if calls == kill_at:
                raise KilledError
            return original(*arguments, **options)

        return call

    for place, name in patched:
        module, _, attribute = place.rpartition(".")
        owner = server_market if attribute == "server_market" else None
        if owner is None:
            owner = getattr(__import__(module, fromlist=[attribute]), attribute)
        monkeypatch.setattr(owner, name, killing(getattr(owner, name)))
    held(scenario, tmp_path / "counted")
    writes = calls
    assert writes > 20
    for place in range(2, writes + 1, 5):
        folder, kill_at, calls = tmp_path / str(place), place, 0
        grid, _ = grid_of(scenario, folder / "owners")
        with pytest.raises(KilledError):
            serve(scenario, folder / "run", grid, Settings(drawn=True))
        calls = writes + 1
        again, _ = grid_of(scenario, folder / "owners")
        run = serve(scenario, folder / "run", again, Settings(drawn=True))
        assert_the_same(run, folder / "owners", undisturbed)


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
    """Everybody is killed in the middle of a sale, and comes back as another node."""
    scenario = small(rounds=2, owners__lifetime_budget=6.0)
    whole = held(scenario, tmp_path / "whole")
    grid, _ = grid_of(scenario, tmp_path / "owners", kill_at=15)
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
