"""Dependencies point one way (docs/architecture.md), and every file is listed in its room."""

import ast

from .conftest import ROOT

PACKAGE = ROOT / "flmarket_sim"
BOTTOM = {
    "durable",
    "errors",
    "folders",
    "threads",
    "valuation",
    "bids",
    "scenario",
    "scenario_file",
    "scenario_check",
    "shipped",
    "toml_lines",
    "randomness",
    "registry",
    "stored",
}
ALLOWED = {  # room -> rooms it may import
    "auctions": BOTTOM | {"auctions", "aggregation", "mechanism_design"},  # a learned auction loads its network
    "mechanism_design": BOTTOM | {"auctions", "aggregation", "learning", "population", "strategy", "mechanism_design"},
    "aggregation": BOTTOM | {"aggregation"},
    "strategy": BOTTOM | {"auctions", "aggregation", "population", "learning", "strategy"},
    "learning": BOTTOM | {"learning"},
    "privacy": BOTTOM | {"privacy"},
    "eventlog": BOTTOM | {"eventlog"},
    "population": BOTTOM | {"learning"},
    "market": BOTTOM | {"auctions", "aggregation", "learning", "privacy", "eventlog", "population", "strategy", "market"},
    "report": BOTTOM | {"eventlog", "privacy", "mechanism_design", "strategy", "testing", "study", "report"},
    "study": BOTTOM
    | {"auctions", "aggregation", "learning", "population", "strategy", "mechanism_design", "market", "eventlog", "study"},
    "testing": BOTTOM | {"auctions", "aggregation", "population", "strategy", "testing"},
} | dict.fromkeys(BOTTOM, BOTTOM)
PURE = {"auctions", "aggregation"}  # arrays in, arrays out


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module == "flmarket_sim")


def test_dependencies_point_one_way():
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room in ("__init__", "cli") or room.startswith("cli_"):
            continue
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == "flmarket_sim" and len(parts) > 1:
                assert parts[1] in ALLOWED[room], f"{path.relative_to(ROOT)} imports {name}"
            if room in PURE:
                assert parts[0] not in ("simpy", "typer", "rich", "pyarrow", "pathlib"), f"{path} imports {name}"


def test_the_rooms_are_those_of_the_page():
    page = (ROOT / "docs" / "architecture.md").read_text()
    for path in PACKAGE.iterdir():
        if path.name not in ("__pycache__", "py.typed"):
            assert path.name in page, f"docs/architecture.md does not mention {path.name}"


def test_public_names_exist():
    import flmarket_sim

    assert all(hasattr(flmarket_sim, name) for name in flmarket_sim.__all__)


def test_no_file_has_grown_a_second_idea():
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 400, path
