"""What the pages say is run: the mechanism, the queries, the scenario, the tables, the links."""

import re
import shlex
import subprocess
import sys

import pytest

import flmarket_sim as fm
from docs import command_line, findings, kinds, perturbations
from flmarket_sim.scenario.scenario_file import parse_scenario
from flmarket_sim.testing import check_auction
from tests.support.command_line import flmarket
from tests.support.paths import ROOT

PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "examples/*.md", "analysis/*.md", "benchmarks/*.md")
    for page in ROOT.glob(pattern)
)
GENERATED = (  # by commands
    "docs/reproduction.md", "docs/mechanisms.md", "benchmarks/results.md", "THIRD_PARTY.md",
)  # fmt: skip
HAND_WRITTEN = [page for page in PAGES if str(page.relative_to(ROOT)) not in GENERATED]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory):
    scenario = fm.load_scenario(ROOT / "scenarios/quickstart.toml")
    return fm.run(scenario, tmp_path_factory.mktemp("docs") / "run").path


def test_the_mechanism_of_the_page_is_short_and_runs_in_a_market(tmp_path):
    page = (ROOT / "docs/writing-a-mechanism.md").read_text()
    code, study, check, *_ = blocks("docs/writing-a-mechanism.md", "python")
    assert len(code.splitlines()) <= 30
    for name, text in (("lottery", code), ("study", study), ("check", check)):
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    run, _, evaluate, labels, forced = re.findall(r"^flmarket ((?!: ).*)$", page, re.MULTILINE)
    done = flmarket(*shlex.split(run), "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert fm.read_run(tmp_path / "run")["scenario"]["auction"] == {
        "name": "lottery.py:Lottery",
        "chance": 0.8,
    }
    for command in (evaluate, labels):
        few = ("--profiles", "4", "--floor", "0", "--workers", "1")
        done = flmarket(*shlex.split(command), *few, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert "rare" in done.stdout and "often" in done.stdout and (tmp_path / "lottery.png").exists()
    for script, words in (("study.py", "mean error bound"), ("check.py", "Not promised, and it")):
        printed = subprocess.run(
            [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        assert words in printed
    (tmp_path / "lottery.py").write_text(code.replace("bids.full_value", "bids.values"))
    failed = flmarket(*shlex.split(run), "--out", "RUN", cwd=tmp_path)
    shown = re.search(r"```\n(flmarket: .*?)```", page, re.DOTALL)[1]
    assert failed.returncode == 1 and shown.strip() in failed.stderr
    (tmp_path / "lottery.py").write_text(code)
    done = flmarket(*shlex.split(forced), cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_every_query_of_the_pages_gives_an_answer(quickstart):
    queries = blocks("docs/event-log.md", "sql")
    assert len(queries) >= 6
    for query in queries:
        query = query.replace("runs/quickstart-1234", str(quickstart))
        direct = "read_parquet" in query  # the page's example of another reader
        found = fm.sql(quickstart, query.rstrip().rstrip(";"), unsafe=direct).to_pylist()
        assert found and all(value is not None for row in found for value in row.values()), query


def test_the_queries_about_owners_count_every_payment_once(tmp_path):
    run = fm.run(
        fm.load_scenario(ROOT / "scenarios/studies/unreliable.toml"), tmp_path / "run"
    ).path  # two buyers
    paid = fm.sql(run, "select count(*) as n from payment where sender = -1").to_pylist()[0]["n"]
    query = next(query for query in blocks("docs/event-log.md", "sql") if "surplus" in query)
    joined = re.search(r"FROM payment.*?(?=GROUP)", query, re.DOTALL)[0]
    assert fm.sql(run, f"select count(*) as n {joined}").to_pylist() == [{"n": paid}]


def test_the_python_of_the_readme_runs(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)  # anywhere: its scenarios come with the package
    market, mechanism = blocks("README.md", "python")
    exec(compile(market, "README.md", "exec"), {})
    assert "asked" in capsys.readouterr().out
    found: dict = {}
    exec(compile(mechanism, "README.md", "exec"), found)
    check_auction(found["MyAuction"](), markets=10)
    assert mechanism in blocks("docs/tutorial.md", "python")


def test_the_tour_of_the_python_page_runs(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in blocks("docs/python.md", "python"):
        exec(compile(block, "python.md", "exec"), names)
    told = capsys.readouterr().out
    assert "less all-in" in told and "nothing passed" in told and told.endswith("page.html\n")
    written = {path.name for path in tmp_path.iterdir()}
    assert written >= {"first-run", "rounds.svg", "errors.tex", "errors.pdf", "page.html"}


def test_the_probe_of_the_page_runs(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    exec(
        compile(blocks("docs/strategic-owners.md", "python")[0], "strategic-owners.md", "exec"), {}
    )
    assert capsys.readouterr().out.count("[") >= 3


def test_the_best_cheat_of_a_cell_has_the_interval_of_its_gain():
    rows = [
        {"auction": "a", "check": "c", "privacy loss": "0.5", "cheat": cheat, "gain": gain}
        for cheat, gain in (("stale", "0.10 [0.05, 0.15]"), ("noise", "0.636 [0.374, 0.898]"))
    ]
    none = [rows[0] | {"privacy loss": "2", "cheat": "honest", "gain": "0"}]
    (row,) = findings.by_best_cheat(rows + none)
    assert row["e = 0.5"] == "noise 0.64 [0.37, 0.90]" and row["e = 2"] == "honest 0.00"


def test_the_table_of_shares_has_a_column_for_each_and_the_last_error():
    rows = [
        {"cheat": "flip", "pipeline": name, "share": share, "accuracy": f"{mean} [0.1, 0.9]"}
        | {"error ratio": f"{10 * mean} [1, 9]"}
        for name, share, mean in (("sum", "0.4", 0.2), ("sum", "0", 0.8), ("check", "0", 0.7))
    ]
    wide = {row["pipeline"]: row for row in findings.by_share(rows)}
    assert list(wide["sum"]) == ["cheat", "pipeline", "0%", "40%", "error then"]
    assert wide["sum"]["40%"] == "0.20 [0.10, 0.90]"
    assert wide["sum"]["error then"] == "2.00 [1.00, 9.00]"


def test_the_tables_of_the_findings_are_those_that_were_kept():
    for path in findings.PAGES:
        text = path.read_text()
        assert findings.page(text) == text, "run 'python -m docs.findings --page'"


def test_the_scenario_of_the_page_is_valid_and_shows_every_key():
    text = blocks("docs/scenarios.md", "toml")[0]
    scenario = parse_scenario(text, "docs/scenarios.md")
    for part in ("owners", "market", "privacy", "log", "learning", "model"):
        missing = (
            set(type(getattr(scenario, part)).model_fields)
            - getattr(scenario, part).model_fields_set
        )
        assert not missing, f"docs/scenarios.md does not show {missing} of [{part}]"


def test_the_table_of_kinds_is_current():
    assert kinds.page(kinds.PAGE.read_text()) == kinds.PAGE.read_text(), (
        "run 'python -m docs.kinds'"
    )


def test_the_page_of_commands_is_current():
    text = command_line.PAGE.read_text()
    assert command_line.page(text) == text, "run 'python -m docs.command_line'"
    assert "| `--set PATH=VALUE` |" in text


def test_the_table_of_perturbations_is_current():
    text = perturbations.PAGE.read_text()
    assert perturbations.page(text) == text, "run 'python -m docs.perturbations'"
    assert text.count("| `proj-unit` |") == 1


def test_the_perturbation_of_the_page_keeps_its_contract(tmp_path, monkeypatch):
    from flmarket_sim.testing import check_perturbation

    code = blocks("docs/writing-a-perturbation.md", "python")[0]
    (tmp_path / "page_sign.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    check_perturbation("page_sign:RandomSign", draws=2_000)


def anchors(page):
    """The anchors that GitHub gives to the headings of a page."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    names: list[str] = []
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)|<!--.*?-->", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        names.append(f"{name}-{names.count(name)}" if name in names else name)
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)", text):
        place = page.parent / target if target else page
        assert place.exists(), target
        assert not anchor or anchor in anchors(place), f"{target}#{anchor}"


def prose(page):
    """The lines of a page without tables, code, images, marks, and links that stand alone."""
    fenced = False
    seen = re.sub(
        r"<!--.*?-->", lambda mark: "\n" * mark[0].count("\n"), page.read_text(), flags=re.S
    )
    for number, line in enumerate(seen.splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        if not fenced and not re.match(r"\||    |```|!?\[[^]]*\]\([^)]*\)$", line):
            yield number, line


@pytest.mark.parametrize("page", HAND_WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_a_page_have_a_readable_length(page):
    long = [f"{page.name}:{number}" for number, line in prose(page) if len(line) > 120]
    assert not long, f"wrap these lines at about 100 characters: {', '.join(long)}"


def test_every_page_is_linked_from_another():
    linked = {
        (page.parent / target).resolve()
        for page in PAGES
        for target in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", page.read_text())
    }
    alone = [page.name for page in PAGES if page not in linked and page.name != "README.md"]
    assert not alone, f"no page links to {', '.join(alone)}"


def test_theory_is_cited_by_a_page_that_is_here():
    """Formulas are cited as `docs/theory.md, section N`, and the page has that section."""
    sections = set(re.findall(r"^## (\d+)\. ", (ROOT / "docs/theory.md").read_text(), re.MULTILINE))
    rooms = ("flmarket_sim", "tests", "docs", "scenarios", "analysis", "benchmarks", "examples")
    files = [path for room in rooms for path in (ROOT / room).rglob("*") if path.is_file()]
    texts = {p: p.read_text() for p in files if p.suffix in (".py", ".md", ".toml", ".ipynb")}
    for path, text in texts.items():
        assert not re.search("THEORY" r"(\.md| section)", text), (
            f"{path} cites a page that is not here"
        )
        cited = re.findall(r"docs/theory\.md,\s+sections?\s+(\d+)", text)
        assert set(cited) <= sections, f"{path} cites a section that docs/theory.md does not have"
