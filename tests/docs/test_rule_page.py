"""The rules of docs/writing-a-rule.md are complete, and the page says what is true of them."""

import re

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.aggregation.constrained import MOST_TRIED, Constrained
from flmarket_sim.aggregation.convex_owners import OwnerSymbols
from flmarket_sim.aggregation.convex_rule import LARGEST_STACKED, STACK, WORTH_STACKING
from flmarket_sim.aggregation.rule import check_weights
from flmarket_sim.aggregation.sparse_support import ENUMERATED
from flmarket_sim.plugins import registry
from flmarket_sim.plugins.options import options_model
from flmarket_sim.scenario.scenario_file import parse_scenario
from tests.support.paths import ROOT

PAGE = (ROOT / "docs/writing-a-rule.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def rules(tmp_path, monkeypatch):
    """The modules of the page, importable."""
    names = []
    for code in blocks("python"):
        if not code.startswith("# "):
            continue
        (tmp_path / re.match(r"# (\w+\.py)", code)[1]).write_text(code)
        module, cls = re.match(r"# (\w+)\.py", code)[1], re.search(r"class (\w+)", code)[1]
        names.append(f"{module}:{cls}")
    monkeypatch.syspath_prepend(str(tmp_path))
    return names


def test_the_rules_of_the_page_keep_the_contract(rules):
    assert len(rules) == 2
    rng = np.random.default_rng(0)
    loss = rng.uniform(0.5, 2.0, (20, 5)) * (rng.random((20, 5)) < 0.8)
    loss[3] = 0.0
    size = np.floor(rng.lognormal(3, 1, (20, 5))) + 1
    for name in rules:
        rule = registry.aggregation.create(name)
        for variance in (None, np.where(loss > 0, 100 / np.maximum(loss, 0.1), np.inf)):
            weights = rule.weights(loss, size, 1.0, variance=variance)
            check_weights(rule.name, weights, loss)
            assert weights[3] == pytest.approx(size[3] / size[3].sum())


def test_the_rule_of_the_page_can_be_tried_alone(rules, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks("python")[0], "writing-a-rule.md", "exec"), {})
    assert capsys.readouterr().out.startswith("[[0.333")


def test_the_convex_rule_of_the_page_does_what_its_docstring_says(rules):
    loss, size = np.array([[0.5, 2.0, 2.0, 0.0]]), np.array([[8.0, 1.0, 1.0, 5.0]])
    weights = registry.aggregation.create(rules[1], price=0.1).weights(loss, size)[0]
    assert weights == pytest.approx([0.6, 0.2, 0.2, 0.0], abs=1e-7)  # twice their data of 10
    loose = registry.aggregation.create(rules[1], price=1.0, times=10.0).weights(loss, size)
    assert loose == pytest.approx(fm.aggregation.create("opt-aggr").weights(loss, size), abs=1e-7)


def test_the_table_has_the_built_in_constraints_and_its_scenario_is_valid():
    options = set(options_model(Constrained).model_fields)
    assert options <= set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    scenario = parse_scenario('name = "constrained"\n' + blocks("toml")[0], "docs")
    assert (
        fm.aggregation.create(scenario.aggregation.name, **scenario.aggregation.options).sparsity
        == 6
    )


def test_the_table_has_the_symbols_and_the_text_the_numbers():
    cells = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (?:var|par|exp)", PAGE, re.MULTILINE)
    symbols = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert symbols == {name for name in vars(OwnerSymbols(2)) if not name.startswith("_")} - {"n"}
    text = " ".join(PAGE.split())
    assert f"From {WORTH_STACKING} markets of at most {LARGEST_STACKED} owners on, {STACK} " in text
    assert f"at most {ENUMERATED:,}" in text and f"on at most {MOST_TRIED} of them" in text
