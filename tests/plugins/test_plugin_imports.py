"""The files that a plug-in imports are found without importing them."""

import subprocess
import sys

import pytest

from flmarket_sim.plugins.plugin_imports import imported_files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path


def written(folder, **files):
    """Files by their names, in which __ stands for a slash."""
    for name, text in files.items():
        path = folder / (name.replace("__", "/", 1) + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def names(file):
    return set(imported_files(file))


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("import one", {"one.py"}),
        ("import one as other, numpy", {"one.py"}),
        ("from one import x", {"one.py"}),
        ("def f():\n    import one", {"one.py"}),
        ("import shelf.book", {"shelf/init.py", "shelf/book.py"}),
        ("from shelf import book", {"shelf/init.py", "shelf/book.py"}),
        ("from shelf.book import x", {"shelf/init.py", "shelf/book.py"}),
        ("import loose.leaf", {"loose/leaf.py"}),
        ("import circle", {"circle.py", "one.py"}),
        ("import json", set()),
        ("import yonder", set()),
        ("import flmarket_sim.errors", set()),
        ("import numpy.linalg", set()),
        ("not python at all", set()),
    ],
)
def test_import_statements_lead_to_files(folder, statement, found):
    written(folder, one="import circle", circle="import one, mine", shelf__book="x = 1")
    written(folder, json="", numpy="", loose__leaf="")
    (folder / "shelf/__init__.py").write_text("")
    (folder / "mine.py").write_text(statement)
    reached = found | ({"circle.py"} if "one.py" in found else set())
    assert names(folder / "mine.py") == {one.replace("init", "__init__") for one in reached}


def test_relative_imports_begin_at_the_folder_of_their_file(folder):
    for package in ("outer", "outer/inner"):
        (folder / package).mkdir()
        (folder / package / "__init__.py").write_text("")
    (folder / "outer/near.py").write_text("")
    (folder / "outer/inner/beside.py").write_text("from ..near import x")
    (folder / "outer/inner/mine.py").write_text("from . import beside")
    assert names(folder / "outer/inner/mine.py") == {
        "outer/inner/__init__.py",
        "outer/inner/beside.py",
        "outer/near.py",
    }


def test_the_working_directory_comes_after_the_folder_of_the_file(folder):
    written(folder, mine="import one, two", one="")
    written(folder / "elsewhere", one="", two="")
    found = imported_files(folder / "mine.py")
    assert found == {"one.py": folder / "one.py", "two.py": folder / "elsewhere/two.py"}


def test_the_files_are_those_that_python_imports(folder):
    """The slow twin: a process imports the plug-in, and says which files that brought."""
    written(folder, mine="import one\nfrom shelf import book", one="from shelf.book import x")
    written(folder, shelf__book="x = 1\nimport json, numpy", unused="")
    (folder / "shelf/__init__.py").write_text("")
    code = (
        "import sys; sys.path.append(sys.argv[1]); import mine\n"
        "print(*(m.__file__ for m in sys.modules.values() if getattr(m, '__file__', None)))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, folder], capture_output=True, text=True, check=True
    )
    brought = {file for file in told.stdout.split() if file.startswith(f"{folder}/")}
    found = {str(file) for file in imported_files(folder / "mine.py").values()}
    assert found == brought - {str(folder / "mine.py")} and len(found) == 3


def test_a_link_is_named_as_it_is_imported_and_counts_once(folder):
    written(folder, mine="import helpers, again")
    (folder / "elsewhere/real.py").write_text("import helpers")
    for name in ("helpers", "again"):
        (folder / f"{name}.py").symlink_to(folder / "elsewhere/real.py")
    assert imported_files(folder / "mine.py") == {"helpers.py": folder / "elsewhere/real.py"}


def test_a_package_that_is_installed_from_its_source_is_found_from_any_directory(
    folder, monkeypatch
):
    (folder / "rules").mkdir()
    (folder / "rules/mine.py").write_text("from helpers import one")
    written(folder / "project", helpers__one="from . import two", helpers__two="")
    (folder / "project/helpers/__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(folder / "project"))
    here = names(folder / "rules/mine.py")
    assert here == {"helpers/__init__.py", "helpers/one.py", "helpers/two.py"}
    monkeypatch.chdir(folder / "project")
    assert names(folder / "rules/mine.py") == here


def test_a_working_directory_that_is_gone_is_no_place_to_look(folder, monkeypatch):
    written(folder, mine="import one", one="")
    (folder / "gone").mkdir()
    monkeypatch.chdir(folder / "gone")
    (folder / "gone").rmdir()
    assert names(folder / "mine.py") == {"one.py"}
