import pytest

import flmarket_sim as fm
from flmarket_sim.auctions import create, names, register
from flmarket_sim.errors import InputError
from flmarket_sim.plugins import plugin_kind, registry


def test_every_built_in_can_be_made_and_says_what_it_is():
    for kind in (registry.auctions, registry.aggregation, registry.partitions, registry.datasets):
        for name in kind.names():
            assert kind.get(name).name == name and kind.describe(name)


def test_module_and_class_name_a_plug_in():
    assert create("flmarket_sim.auctions.all_in:AllIn").name == "all-in"


def test_a_registered_class_is_found_by_its_name_and_cannot_take_anothers():
    class Mine:
        """Mine."""

        name = "mine"
        guarantees = {}

        def decide(self, bids, budget, rng): ...

    register(Mine)
    assert "mine" in names() and isinstance(create("mine"), Mine)
    taken = type("Taken", (Mine,), {"name": "all-in"})
    with pytest.raises(InputError, match="registered already"):
        register(taken)
    with pytest.raises(InputError, match="has no name"):
        register(type("Nameless", (), {}))


def test_entry_points_of_other_packages_are_found(monkeypatch):
    from importlib.metadata import EntryPoint

    point = EntryPoint("theirs", "flmarket_sim.auctions.all_in:AllIn", "some.group")
    monkeypatch.setattr(
        plugin_kind, "entry_points", lambda group: [point] if group == "some.group" else []
    )
    theirs = plugin_kind.PluginKind("auction", {}, group="some.group")
    assert theirs.names() == ["theirs"] and theirs.create("theirs").name == "all-in"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("all-inn", {}, "did you mean 'all-in'"),
        ("posted-price", {"prize": 1.0}, "options: price"),
        ("posted-price", {"price": -1.0}, "greater than 0"),
        ("flmarket_sim.auctions.all_in:AlIn", {}, "did you mean 'AllIn'"),
        ("no_such_module:X", {}, "cannot be imported"),
    ],
)
def test_what_cannot_be_made_is_explained(name, options, message):
    with pytest.raises(InputError, match=message):
        create(name, **options)


@pytest.mark.parametrize("kind", registry.KINDS)
def test_one_decorator_registers_a_plug_in_of_every_kind(kind):
    known = registry.KINDS[kind]
    content = dict.fromkeys(known.needs) | {"name": f"my-{kind}", "__doc__": "Mine."}
    mine = fm.register(kind)(type("Mine", (), content))
    assert known.get(f"my-{kind}") is mine and f"my-{kind}" in known.names()
    assert known.describe(f"my-{kind}") == "Mine."
    with pytest.raises(InputError, match="registered already"):
        fm.register(kind)(type("Another", (), content))
    with pytest.raises(InputError, match="it has no name"):
        fm.register(kind)(type("Nameless", (), {}))
    with pytest.raises(InputError, match="not a class"):
        fm.register(kind)(mine())


def test_a_registered_auction_runs_in_a_market(tmp_path):
    from flmarket_sim.auctions.all_in import AllIn

    @fm.register("auction")
    class Generous(AllIn):
        """As all-in."""

        name = "generous"

    run = fm.run("quickstart", tmp_path / "run", rounds=2, model="none", auction="generous")
    assert run.info["scenario"]["auction"]["name"] == "generous" and len(run.rounds) == 2


def test_an_unknown_kind_is_refused():
    with pytest.raises(InputError, match="did you mean 'auction'"):
        fm.register("auctions")
