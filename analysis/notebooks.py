"""Executes the notebooks of this folder and writes them back with their outputs (`make notebooks`).

A written notebook has code, text, tables and figures, but no times, no versions and no state of an
editor, so it changes only when its content does. `stale` lists the differences between a committed
notebook and a fresh execution; the tests use it.
"""

from __future__ import annotations

import argparse
import base64
import io
import os
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
import numpy as np
from matplotlib import image
from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets.config import Config

FOLDER = Path(__file__).parent
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
TAG = "parameters"  # of the cell whose values a reader may change
PIXELS = 0.01  # mean difference of colours (of 1) that another machine may cause


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def execute(path: Path, parameters: str = "", claims: str = "") -> NotebookNode:
    """The cleaned notebook after a new kernel has run it from top to bottom in this folder.

    `parameters` is code that runs after the cell with that tag, and `claims` code that runs after
    the last cell; neither is in the result. Warnings are errors, because readers would see them.
    """
    book = cleaned(read(path), with_outputs=False)
    after = 1 + next(k for k, cell in enumerate(book.cells) if TAG in cell.metadata.get("tags", []))
    extra = [nbformat.v4.new_code_cell(source) for source in (parameters, claims)]
    book.cells = [*book.cells[:after], extra[0], *book.cells[after:], extra[1]]
    # The kernel talks over files instead of ports, so that nobody else on the machine can listen.
    with tempfile.TemporaryDirectory() as sockets:
        short = os.name == "posix" and len(sockets) < 85  # the limit is about a hundred letters
        config = Config(
            {"KernelManager": {"transport": "ipc", "ip": f"{sockets}/kernel"}} if short else {}
        )
        where = {"metadata": {"path": str(FOLDER)}}
        client = NotebookClient(
            book,
            kernel_name="python3",
            timeout=170,
            startup_timeout=600,
            record_timing=False,
            resources=where,
            config=config,
        )
        client.execute(env=os.environ | {"FLMARKET_PROGRESS": "0"})
    book.cells = [cell for cell in book.cells if not any(cell is other for other in extra)]
    book = cleaned(_renumbered(book))
    for number, output in outputs(book):
        if output.get("name") == "stderr":
            raise RuntimeError(f"{path.name}, cell {number} prints to stderr: {output['text']}")
    return book


def cleaned(book: NotebookNode, with_outputs: bool = True) -> NotebookNode:
    """The notebook without the traces of an execution or an editor."""
    book = nbformat.from_dict(book)
    book.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(book.cells):
        tagged = TAG in cell.metadata.get("tags", [])
        cell.metadata = nbformat.from_dict({"tags": [TAG]} if tagged else {})
        cell.id = f"cell-{number}"
        if cell.cell_type == "code":
            cell.outputs = _merged(cell.outputs) if with_outputs else []
            cell.execution_count = cell.execution_count if with_outputs else None
            for output in cell.outputs:
                output.pop("transient", None)
                if "metadata" in output:
                    output.metadata = NotebookNode()
    return book


def _renumbered(book: NotebookNode) -> NotebookNode:
    """The notebook with executions counted from 1, as if the cells that were added had not run."""
    for count, cell in enumerate((c for c in book.cells if c.cell_type == "code"), 1):
        cell.execution_count = count
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = count
    return book


def _merged(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Joins the parts of a stream, since the cuts between them depend on the moment."""
    merged: list[NotebookNode] = []
    for output in outputs:
        if merged and output.get("name") and output.get("name") == merged[-1].get("name"):
            merged[-1].text += output.text
        else:
            merged.append(output)
    return merged


def outputs(book: NotebookNode) -> Iterator[tuple[int, NotebookNode]]:
    """Every output with the number of its cell."""
    for number, cell in enumerate(book.cells):
        for output in cell.get("outputs", []):
            yield number, output


def texts(output: NotebookNode) -> list[str]:
    """The text of an output."""
    data = output.get("data", {})
    return [output[key] for key in ("text",) if key in output] + [
        data[key] for key in sorted(data) if key.startswith("text/")
    ]


def stale(committed: NotebookNode, fresh: NotebookNode) -> list[str]:
    """Differences of two executions of a notebook, in text, numbers and figures.

    Numbers differ if they are more than one unit of their last digit apart.
    """
    if [cell.source for cell in committed.cells] != [cell.source for cell in fresh.cells]:
        return ["the cells are not the same"]
    differences = []
    for number, (old, new) in enumerate(zip(committed.cells, fresh.cells, strict=True)):
        before, after = old.get("outputs", []), new.get("outputs", [])
        if [sorted(output.get("data", {})) for output in before] != [
            sorted(output.get("data", {})) for output in after
        ]:
            differences.append(f"cell {number} shows other kinds of output")
            continue
        for first, second in zip(before, after, strict=True):
            differences += [
                f"cell {number} says {b!r} instead of {a!r}"
                for a, b in zip(texts(first), texts(second), strict=True)
                if not alike(a, b)
            ]
            if "image/png" in first.get("data", {}) and not _same_picture(
                first.data["image/png"], second.data["image/png"]
            ):
                differences.append(f"cell {number} draws another figure")
    return differences


def alike(first: str, second: str) -> bool:
    """Whether texts are the same, with numbers at most one unit of the last digit apart.

    Whole numbers must be equal.
    """
    if " ".join(NUMBER.sub("#", first).split()) != " ".join(NUMBER.sub("#", second).split()):
        return False
    return all(
        _close(a, b) for a, b in zip(NUMBER.findall(first), NUMBER.findall(second), strict=True)
    )


def _close(first: str, second: str) -> bool:
    if first == second:
        return True
    if not any("." in text or "e" in text for text in (first, second)):
        return False
    units = []
    for text in (first, second):
        mantissa, _, exponent = text.replace(",", "").partition("e")
        units.append(10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2])))
    return abs(float(first.replace(",", "")) - float(second.replace(",", ""))) <= 1.001 * max(units)


def _same_picture(first: str, second: str) -> bool:
    old, new = (
        image.imread(io.BytesIO(base64.b64decode(text)), format="png") for text in (first, second)
    )
    return old.shape == new.shape and float(np.abs(old - new).mean()) < PIXELS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, default=NOTEBOOKS)
    for path in parser.parse_args().notebooks:
        began = time.perf_counter()
        nbformat.write(execute(path), path)
        print(
            f"{path.name}: {time.perf_counter() - began:.1f} s, "
            f"{path.stat().st_size / 1000:.0f} kB",
            flush=True,
        )


if __name__ == "__main__":
    main()
