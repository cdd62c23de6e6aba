"""The classes on the pages about robust rules and contributions do what the pages say."""

import re

import numpy as np
import pytest

from flmarket_sim.plugins import registry
from flmarket_sim.scenario.scenario_file import parse_scenario
from flmarket_sim.testing import check_robust_rule
from tests.contribution.test_contributions import TableGame
from tests.support.paths import ROOT

PAGES = {name: (ROOT / "docs" / name).read_text() for name in (
    "writing-a-robust-rule.md", "contributions.md",
)}  # fmt: skip


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", PAGES[page], re.DOTALL)


@pytest.fixture
def written(tmp_path, monkeypatch):
    """The modules of both pages, importable."""
    for page in PAGES:
        for code in blocks(page, "python"):
            if code.startswith("# "):
                (tmp_path / re.match(r"# (\w+\.py)", code)[1]).write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_the_robust_rule_of_the_page_keeps_the_contract(written):
    check_robust_rule("even_mean:EvenMean")


def test_the_example_keeps_the_contract(monkeypatch):
    monkeypatch.chdir(ROOT)
    check_robust_rule("examples/centred_clipping.py:CentredClipping")


def test_the_contribution_of_the_page_is_the_mean_over_coalitions(written):
    game = TableGame(3, 0)
    made = registry.contributions.create("banzhaf:Banzhaf").values(game, np.random.default_rng(0))
    with_0 = [game.table[s] for s in range(8) if s & 1]
    without_0 = [game.table[s] for s in range(8) if not s & 1]
    assert made.value[0] == pytest.approx(np.mean(with_0) - np.mean(without_0))


@pytest.mark.parametrize("page", PAGES)
def test_the_tables_of_the_page_are_scenarios(page):
    for text in blocks(page, "toml"):
        parse_scenario(text)


def test_the_page_has_every_rule_with_its_default():
    page = PAGES["writing-a-robust-rule.md"]
    for name in registry.robust_rules.names():
        assert f"| `{name}`" in page, name
    for name, option in (("trimmed-mean", "trim"), ("krum", "cheats"), ("norm-bounding", "factor")):
        default = getattr(registry.robust_rules.create(name), option)
        assert f"| `{name}` (`{option}` = {default:g})" in page
