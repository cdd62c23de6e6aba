import json
import re

import pytest

from flmarket_sim.errors import ScenarioError
from flmarket_sim.scenario.model import Market, Owners, Scenario
from flmarket_sim.scenario.part import Plugin
from flmarket_sim.scenario.scenario_file import json_schema, load_scenario, parse_scenario
from tests.support.paths import ROOT

SCENARIOS = sorted((ROOT / "scenarios").rglob("*.toml"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_scenario_of_the_repository_is_valid(path):
    assert load_scenario(path).description


def test_the_schema_for_editors_is_current():
    assert json.loads((ROOT / "scenarios" / "schema.json").read_text()) == json_schema(), (
        "run 'make schema'"
    )


def test_an_empty_file_is_the_default_market():
    assert parse_scenario("") == Scenario()


def test_all_errors_come_at_once_with_line_path_value_and_nearest_name():
    text = """rounds = -3
auctoin = 1
[auction]
name = "al-in"
[market]
bidders = 200
delay = { name = "uniform", low = 3.0, high = 1.0 }
[owners]
families = ["linear", "cubic"]
accept = "alway"
[[buyers]]
name = "a"
[buyers.model]
name = "logistic"
learning_rat = 2.0
[[buyers]]
name = "a"
auction = { name = "posted-price", price = -1.0, prise = 2 }
"""
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, "x.toml")
    message = str(caught.value)
    for expected in (
        r"x.toml:1: rounds: .*greater than or equal to 1 \(got -3\)",
        r"x.toml:2: auctoin: unknown key; did you mean 'auction'\?",
        r"x.toml:4: auction.name: unknown auction 'al-in'; did you mean 'all-in'\?",
        r"x.toml:6: market.bidders: 200 owners are asked a round .* only 100",
        r"x.toml:7: market.delay: .*low \(3.0\) must not exceed high",
        r"x.toml:9: owners.families\[1\]: unknown valuation family 'cubic'. Known: exponential",
        r"x.toml:10: owners.accept: must be one of rational, always; did you mean 'always'\?",
        r"x.toml:15: buyers\[0\].model.learning_rat: 'logistic' has no such option; "
        r"did you mean 'learning_rate'\?",
        r"x.toml:17: buyers\[1\].name: another buyer is called 'a' already",
        r"x.toml:18: buyers\[1\].auction.price: .*greater than 0 \(got -1.0\)",
        r"x.toml:18: buyers\[1\].auction.prise: 'posted-price' has no such option; "
        r"did you mean 'price'\?",
    ):
        assert re.search(expected, message), f"{expected}\n{message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed = 1\nrounds = =\n", "not TOML.*line 2"),
        ('rounds = "3"', "rounds: .*valid integer"),
        ("rounds = true", "rounds: .*valid integer"),
        ("[owners]\nrate = [1.5, 0.5]", ":2: owners.rate: the range must rise"),
        ("[owners]\nrate = [0, 1]", "greater than 0"),
        ("[owners]\nprivacy_budget = inf", "finite"),
        ("[owners]\navailability = 1.5", "less than or equal to 1"),
        ("[budget]\nfactor = 1.0\namount = 3.0", "either 'factor' or 'amount'"),
        ("[owners]\nprivacy_budget = 800.0", "exponential valuations"),
        ('[model]\nname = "no_such_module:Model"', "cannot be imported"),
        ('[model]\nname = "torch.nn:Liner"', "has no 'Liner'; did you mean 'Linear'"),
        ('[data]\nname = "synthetic"\nrecords = 1', "greater than or equal to 2"),
        ('[auction]\nname = "math:pi"', "not a class"),
        ('[auction]\nname = "builtins:int"', "no name and no guarantees and no decide"),
        ('[auction]\nname = "collections:OrderedDict"', "no decide"),
        ('[aggregation]\nname = "flmarket_sim.auctions.all_in:AllIn"', "no weights"),
        ('[auction]\nname = "tests.support.mechanisms:Picky"', "a chance above 1"),
        ('[auction]\nname = "tests.support.mechanisms:Picky"\nchance = nan', "finite"),
        ('[model]\nname = "builtins:dict"', "options of dict cannot be read"),
        ("[owners]\ncount = 5", ":2: owners.count: 10 owners are asked a round"),
        (
            "[owners]\ncount = 1000",
            ":2: owners.count: 1000 owners with at least 10 records each need 10000",
        ),
        ("rounds = " + "9" * 5000, "not TOML"),
    ],
)
def test_wrong_values_are_named(text, message):
    with pytest.raises(ScenarioError, match=message):
        parse_scenario(text)


def test_a_missing_file_is_named_with_the_nearest():
    with pytest.raises(ScenarioError, match=r"did you mean .*quickstart\.toml"):
        load_scenario(ROOT / "scenarios" / "quikstart.toml")


def test_overrides_reach_any_path():
    text = '[[buyers]]\nname = "a"\n'
    settings = [
        "auction.name=all-in",
        "seed=7",
        "owners.rate=[1.0, 2.0]",
        "buyers.0.budget.factor=0.5",
    ]
    scenario = parse_scenario(text, overrides=settings)
    assert (
        scenario.auction.name == "all-in"
        and scenario.seed == 7
        and scenario.owners.rate == (1.0, 2.0)
    )
    assert scenario.resolved_buyers()[0].budget.factor == (0.5, 0.5)


def test_what_concerns_several_places_is_said_with_the_rest():
    text = (
        'rouns = 2\n[owners]\ncount = 5\nprivacy_budget = 800.0\naccept = "alway"\n'
        "[budget]\nfactor = 1.0\namount = 2.0\n"
    )
    with pytest.raises(ScenarioError, match=r"^5 errors"):
        parse_scenario(text)


def test_a_table_without_a_name_adds_to_what_is_there():
    common = 'model = { name = "none" }\nauction = { name = "posted-price" }\n'
    own = '[[buyers]]\nname = "a"\nauction = { price = 5.0 }\nmodel = { evaluate_every = 5 }'
    scenario = parse_scenario(common + own)
    buyer = scenario.resolved_buyers()[0]
    assert (
        buyer.model.name == "none"
        and buyer.auction.name == "posted-price"
        and buyer.auction.options == {"price": 5.0}
    )
    assert (
        parse_scenario("", overrides=["market.delay.seconds=1.0"]).market.delay.name == "constant"
    )


@pytest.mark.parametrize(
    "setting",
    [
        "seed",
        "seed.x=1",
        "=3",
        "nothing.of.this=1",
        "buyers.4.name=x",
        "buyers.².name=x",
        "rounds=" + "[" * 3000,
    ],
)
def test_an_override_that_leads_nowhere_is_refused(setting):
    with pytest.raises(ScenarioError):
        parse_scenario("seed = 1", overrides=[setting])


def test_the_hash_is_of_what_the_scenario_means():
    assert parse_scenario("seed = 0").digest() == parse_scenario("").digest()
    assert parse_scenario("seed = 1").digest() != parse_scenario("").digest()


def test_buyers_take_what_they_leave_out_from_the_scenario():
    scenario = parse_scenario(
        'auction = { name = "all-in" }\n[[buyers]]\nname = "a"\n'
        '[[buyers]]\nname = "b"\nauction = { name = "fair-query" }'
    )
    assert [buyer.auction.name for buyer in scenario.resolved_buyers()] == ["all-in", "fair-query"]


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"rounds": 0}, "greater than or equal to 1"),
        ({"round": 3}, "did you mean 'rounds'"),
        ({"market": {"bidders": 200}}, "there are only 100"),
        ({"market": Market(bidders=200)}, "there are only 100"),
        ({"auction": "all-inn"}, "did you mean 'all-in'"),
        ({"auction": {"name": "posted-price", "prise": 3.0}}, "did you mean 'price'"),
        ({"owners": {"families": ["exponential"], "privacy_budget": 600.0}}, "exponential"),
        ({"owners": {"count": 5000}}, "owners.count"),
        ({"budget": {}}, "either 'factor' or 'amount'"),
        ({"buyers": [{"name": "a", "budget": {}}]}, r"buyers\[0\].budget: give either"),
        ({"buyers": [{"name": "a"}, {"name": "a"}]}, "another buyer is called 'a'"),
        ({"sweep": {"seeds": 2}}, "only a scenario file can have a sweep"),
    ],
)
def test_a_scenario_built_in_python_follows_the_rules_of_a_file(tables, message):
    with pytest.raises(ScenarioError, match=message):
        Scenario(**tables)


def test_a_scenario_built_in_python_is_the_one_of_the_file():
    text = (
        'auction = "all-in"\n[owners]\ncount = 14\npartition = {alpha = 50.0, name = "dirichlet"}'
    )
    partition = Plugin(name="dirichlet", alpha=50.0)
    built = Scenario(auction="all-in", owners=Owners(count=14, partition=partition))
    assert built == parse_scenario(text) and built.digest() == parse_scenario(text).digest()
    assert Scenario.model_validate(built) is not None and Scenario(**dict(built)) == built
