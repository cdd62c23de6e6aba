"""The notebooks run from top to bottom, say what is committed, and leave nothing behind."""

import base64
import re

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from analysis import notebooks
from tests.analysis.claims import CLAIMS
from tests.support.paths import ROOT

CHANGED = {  # other values of all parameters of each notebook
    "1_first_look": "ROUNDS, AUCTION, SEED = 6, 'pay-as-bid', 3",
    "2_comparing_mechanisms": "AUCTIONS, FACTORS = ['all-in', 'pay-as-bid'], [0.5]\n"
    "SEEDS, ROUNDS = 2, 3",
    "3_strategic_behaviour": "AUCTIONS, REPLAYED = ['posted-price', 'pay-as-bid'], 'pay-as-bid'\n"
    "MARKETS, PROFILES = 3, 8",
    "4_privacy_ledgers": "ROUNDS, OWNERS, LIFETIMES = 45, 20, [4.0]",
    "5_anatomy_of_the_error_bound": "ROUNDS, FACTORS, FACTOR = 5, (0.3, 1.0), 0.3",
    "6_who_cheats": "CHEATS, CHECKS = ['stale', 'sign-flip'], ['csra']\n"
    "LOSSES, OWNERS, ROUNDS, SEED = [2.0], 40, 5, 3",
}
READ = {path: notebooks.read(path) for path in notebooks.NOTEBOOKS}
MACHINE = re.compile(
    r"(?<![\w.])/(?:tmp|home|root|work|Users|usr|var|opt|private)/|[A-Z]:\\\\|site-packages"
)


def listing(folder):
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if "__pycache__" not in path.parts
    )


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder for temporary files of a kernel, with a path short enough for sockets."""
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    scratch = tmp_path / "t"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield scratch
    monkeypatch.undo()


def test_there_are_six():
    assert len(READ) == 6


@pytest.mark.parametrize("path", READ, ids=lambda path: path.stem)
def test_a_notebook_says_what_a_fresh_execution_says_and_leaves_nothing_behind(path, elsewhere):
    before = listing(notebooks.FOLDER)
    fresh = notebooks.execute(path, claims=CLAIMS[path.stem])  # an answer that is false stops it
    assert notebooks.stale(READ[path], fresh) == [], (
        "run 'make notebooks' and look at what has changed"
    )
    assert listing(elsewhere) == [] and listing(notebooks.FOLDER) == before


@pytest.mark.parametrize("path", READ, ids=lambda path: path.stem)
def test_a_notebook_runs_with_other_parameters(path, elsewhere):
    parameters = CHANGED[path.stem]
    fresh = notebooks.execute(path, parameters)
    assert [cell.source for cell in fresh.cells] == [cell.source for cell in READ[path].cells]
    assert notebooks.stale(READ[path], fresh), "the parameters change nothing"
    assert listing(elsewhere) == []


@pytest.mark.parametrize("path", READ, ids=lambda path: path.stem)
def test_the_parameters_stand_at_the_top(path):
    cells = READ[path].cells
    (place,) = [k for k, cell in enumerate(cells) if cell.metadata.get("tags") == [notebooks.TAG]]
    assert all(cell.cell_type == "markdown" for cell in cells[:place])
    names = set(re.findall(r"^([A-Z][A-Z_, ]*) =", cells[place].source, re.MULTILINE))
    assert names and all(name in CHANGED[path.stem] for name in ", ".join(names).split(", "))


def test_a_claim_that_is_false_stops_a_notebook(elsewhere):
    path = next(iter(READ))
    with pytest.raises(CellExecutionError, match="AssertionError"):
        notebooks.execute(path, CHANGED[path.stem], claims="assert ROUNDS == 0")


@pytest.mark.parametrize("path", READ, ids=lambda path: path.stem)
def test_a_notebook_asks_and_answers_and_shows_figures(path):
    book = READ[path]
    first, last = book.cells[0], book.cells[-1]
    assert first.cell_type == last.cell_type == "markdown"
    assert "**Question.**" in first.source and last.source.startswith("**Answer.**")
    assert CLAIMS[path.stem].count("assert ") >= 4  # the answer cannot become false silently
    code = [cell.source for cell in book.cells if cell.cell_type == "code"]
    assert not [source for source in code if "assert " in source]  # readers change parameters
    assert sum("image/png" in output.get("data", {}) for _, output in notebooks.outputs(book)) >= 1
    assert path.stat().st_size < 200_000


@pytest.mark.parametrize("path", READ, ids=lambda path: path.stem)
def test_a_notebook_knows_nothing_of_the_machine_it_was_run_on(path):
    book = READ[path]
    assert nbformat.writes(notebooks.cleaned(book)) == nbformat.writes(
        book
    )  # no times, no versions, no editor's state
    said = [cell.source for cell in book.cells] + [
        text for _, output in notebooks.outputs(book) for text in notebooks.texts(output)
    ]
    assert not [text for text in said if MACHINE.search(text)]
    assert "shared" not in " ".join(said)


def test_what_has_changed_is_found():
    path = next(iter(READ))

    def changed(change):
        book = nbformat.from_dict(READ[path])
        book = nbformat.reads(nbformat.writes(book), 4)
        for number, output in notebooks.outputs(book):
            if change(output):
                return notebooks.stale(READ[path], book), number
        raise AssertionError("nothing was changed")

    def other_text(output):
        if "name" in output:
            output.text = output.text.replace("winners", "losers")
        return "name" in output

    def other_number(output):
        if "name" in output:
            output.text = re.sub(r"\d\.\d\d", "0.99", output.text)
        return "name" in output

    def other_figure(output):
        if "image/png" not in output.get("data", {}):
            return False
        output.data["image/png"] = next(
            other.data["image/png"]
            for _, other in notebooks.outputs(READ[path])
            if "image/png" in other.get("data", {})
            and other.data["image/png"] != output.data["image/png"]
        )
        return base64.b64decode(output.data["image/png"])[:4] == b"\x89PNG"

    def no_figure(output):
        return output.get("data", {}).pop("image/png", None) is not None

    for change in (other_text, other_number, other_figure, no_figure):
        found, number = changed(change)
        assert len(found) == 1 and f"cell {number} " in found[0], change


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("mean 0.169", "mean 0.170", True),
        ("mean 0.169", "mean 0.171", False),
        ("-2,458 of 0.5", "-2,458 of 0.5", True),
        ("7 of 10", "8 of 10", False),
        ("6.37e-05", "6.38e-05", True),
        ("6.37e-05", "6.37e-06", False),
        ("1,057.2", "1,057.3", True),
        ("a 0.1", "b 0.1", False),
        ("inf", "0.1", False),
    ],
)
def test_numbers_may_differ_by_one_in_the_last_digit(first, second, same):
    assert notebooks.alike(first, second) is same


def test_the_page_of_the_folder_names_every_notebook():
    page = (ROOT / "analysis" / "README.md").read_text()
    assert all(f"]({path.name})" in page for path in READ)
