"""Dependencies point one way (docs/architecture.md), and every file is listed in its room."""

import ast
import re

from tests.support.paths import ROOT

PACKAGE = ROOT / "flmarket_sim"
BOTTOM = {
    "errors", "author_frames", "randomness", "threads", "statistics", "storage", "tables",
    "callable_room",
}  # fmt: skip
TYPES = BOTTOM | {"plugins", "scenario", "owners"}
POLICIES = {"auctions", "aggregation", "contribution", "perturbation"}
ALLOWED = {  # room -> rooms it may import
    **dict.fromkeys(BOTTOM, BOTTOM),
    "plugins": BOTTOM | {"plugins"},
    "scenario": TYPES | {"learning"},
    "owners": TYPES | {"learning"},
    "aggregation": TYPES | {"aggregation"},
    "contribution": TYPES | {"aggregation", "contribution"},
    "perturbation": TYPES | {"aggregation", "learning", "perturbation"},
    "checks": TYPES | {"perturbation", "checks"},
    "auctions": TYPES | POLICIES,
    "learning": TYPES | {"learning"},
    "privacy": TYPES | {"perturbation", "privacy"},
    "eventlog": TYPES | {"eventlog"},
    "strategy": TYPES | POLICIES | {"checks", "learning", "strategy"},
    "market": TYPES
    | POLICIES
    | {"checks", "learning", "privacy", "eventlog", "strategy", "market"},
    "testing": TYPES | POLICIES | {"checks", "learning", "privacy", "strategy", "testing"},
    "training": TYPES | POLICIES | {"perturbation", "learning", "strategy", "training"},
    "experiments": TYPES | POLICIES | {"learning", "market", "studies", "experiments"},
    "sweep": TYPES | {"learning", "eventlog", "market", "experiments", "sweep"},
    "studies": TYPES
    | POLICIES
    | {
        "checks", "perturbation", "privacy", "learning", "eventlog", "strategy", "market",
        "testing", "training", "experiments", "studies",
    },
    "paper": TYPES
    | POLICIES
    | {
        "perturbation", "learning", "eventlog", "strategy", "market", "training", "experiments",
        "studies", "paper",
    },
    "league": TYPES
    | POLICIES
    | {"learning", "strategy", "market", "experiments", "studies", "league"},
    "flower": TYPES
    | POLICIES
    | {"learning", "privacy", "eventlog", "market", "flower"},
    "report": TYPES
    | POLICIES
    | {
        "eventlog", "privacy", "strategy", "testing", "market", "experiments",
        "sweep", "studies", "paper", "report",
    },
    "workbench": TYPES
    | POLICIES
    | {"eventlog", "learning", "report", "sweep", "workbench"},
    "results": TYPES
    | POLICIES
    | {
        "eventlog", "strategy", "testing", "market", "experiments", "sweep", "studies",
        "league", "report", "results",
    },
}  # fmt: skip
PURE = {
    "auctions", "aggregation", "contribution", "perturbation", "checks",
}  # fmt: skip


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (
                f"{node.module}.{alias.name}"
                for alias in node.names
                if node.module == "flmarket_sim"
            )


def test_dependencies_point_one_way():
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room in ("__init__", "cli"):
            continue
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == "flmarket_sim" and len(parts) > 1:
                assert parts[1] in ALLOWED[room], f"{path.relative_to(ROOT)} imports {name}"
            if room in PURE and path.name not in (
                "weight_files.py",
                "weight_names.py",
            ):  # which find and read weights, as their names say
                assert parts[0] not in ("simpy", "typer", "rich", "pyarrow", "pathlib"), (
                    f"{path} imports {name}"
                )


def test_the_files_are_those_of_the_page():
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"(\w+\.py)`", page))
    files = {path.name for path in PACKAGE.rglob("*.py") if path.parent.name != "html"}
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"__pycache__"}
    at_the_top = {path.name for path in PACKAGE.glob("*.py")}
    missing = sorted(
        (files - {"__init__.py"} - named - at_the_top)
        | {name for name in rooms | at_the_top if name not in page}
    )
    assert not missing, f"docs/architecture.md does not mention {', '.join(missing)}"
    gone = sorted(named - files - {"findings.py", "kinds.py", "test_architecture.py"})
    assert not gone, f"docs/architecture.md mentions files that are not there: {', '.join(gone)}"


def test_public_names_exist():
    import flmarket_sim

    assert all(hasattr(flmarket_sim, name) for name in flmarket_sim.__all__)


def test_no_file_has_grown_a_second_idea():
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 400, path
