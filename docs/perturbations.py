"""The table of perturbations in writing-a-perturbation.md: `python -m docs.perturbations`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from flmarket_sim.perturbation.perturbation import delta_of, message_bytes
from flmarket_sim.plugins.registry import perturbations

PAGE = Path(__file__).with_name("writing-a-perturbation.md")
BETWEEN = re.compile(r"(<!-- made by: python -m docs.perturbations -->\n).*?(<!-- end -->)", re.S)
SHOWN: tuple[tuple[str, dict[str, Any]], ...] = (
    ("laplace", {}),
    ("priv-unit", {}),
    ("priv-unit", {"length": "unit"}),
    ("proj-unit", {}),
    ("duchi-l2", {}),
    ("duchi-linf", {}),
    ("piecewise", {}),
    ("gaussian", {}),
)
DIMENSION, LOSSES = 650, (0.5, 1.0, 2.0)
DOMAINS = {"l1": "L1 ball", "l2": "L2 ball", "linf": "box", "sphere": "L2 sphere"}


def table() -> str:
    """A row for each built-in perturbation, computed from what it states."""
    heads = [f"variance, e = {loss:g}" for loss in LOSSES]
    lines = [
        f"| name | domain | promise | {' | '.join(heads)} | bytes |",
        "|---|---|---|" + "---|" * (len(LOSSES) + 1),
    ]
    for name, options in SHOWN:
        made = perturbations.create(name, **options)
        title = f"`{name}`" + "".join(f", `{key} = {value!r}`" for key, value in options.items())
        promise = f"(e, {delta_of(made):.0e})" if delta_of(made) else "e"
        variances = (f"{float(made.variance(loss, DIMENSION)):,.0f}" for loss in LOSSES)
        size = f"{message_bytes(made, DIMENSION, 1.0):,}"
        cells = (title, DOMAINS[made.domain], promise, *variances, size)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def page(text: str) -> str:
    """The page with its table as it is now."""
    return BETWEEN.sub(lambda mark: f"{mark[1]}{table()}\n{mark[2]}", text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
