"""Executes the notebooks of this folder and writes them back with their outputs: `make notebooks`, or one by its name.

What is kept is what a reader sees: code, text, tables, figures. Times, versions and the state of an editor are not, so a notebook
changes when its content does. `stale` says where a committed notebook differs from a fresh execution; the tests ask it.
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
PIXELS = 0.01  # mean difference of two pictures, of the range of a colour, that may come from another machine


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def execute(path: Path) -> NotebookNode:
    """The notebook run from top to bottom by a new kernel in this folder, cleaned. Warnings are errors here: readers would see them."""
    book = cleaned(read(path), with_outputs=False)
    with (
        tempfile.TemporaryDirectory() as sockets
    ):  # files instead of ports: nobody else on the machine can listen
        short = (
            os.name == "posix" and len(sockets) < 85
        )  # names of sockets have about a hundred letters at most
        config = Config(
            {"KernelManager": {"transport": "ipc", "ip": f"{sockets}/kernel"}} if short else {}
        )
        where = {"metadata": {"path": str(FOLDER)}}
        client = NotebookClient(
            book,
            kernel_name="python3",
            timeout=170,
            record_timing=False,
            resources=where,
            config=config,
        )
        client.execute()
    book = cleaned(book)
    for number, output in outputs(book):
        if output.get("name") == "stderr":
            raise RuntimeError(f"{path.name}, cell {number} prints to stderr: {output['text']}")
    return book


def cleaned(book: NotebookNode, with_outputs: bool = True) -> NotebookNode:
    """Without anything that an execution or an editor leaves behind."""
    book = nbformat.from_dict(book)
    book.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(book.cells):
        cell.metadata, cell.id = NotebookNode(), f"cell-{number}"
        if cell.cell_type == "code":
            cell.outputs = _merged(cell.outputs) if with_outputs else []
            cell.execution_count = cell.execution_count if with_outputs else None
            for output in cell.outputs:
                output.pop("transient", None)
                if "metadata" in output:
                    output.metadata = NotebookNode()
    return book


def _merged(found: list[NotebookNode]) -> list[NotebookNode]:
    """Prints in one piece: where a stream is cut depends on the moment."""
    merged: list[NotebookNode] = []
    for output in found:
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
    """What an output says in letters."""
    data = output.get("data", {})
    return [output[key] for key in ("text",) if key in output] + [
        data[key] for key in sorted(data) if key.startswith("text/")
    ]


def stale(committed: NotebookNode, fresh: NotebookNode) -> list[str]:
    """Where two executions of a notebook differ: text, numbers (by more than one in the last digit shown), figures."""
    if [cell.source for cell in committed.cells] != [cell.source for cell in fresh.cells]:
        return ["the cells are not the same"]
    found = []
    for number, (old, new) in enumerate(zip(committed.cells, fresh.cells, strict=True)):
        before, after = old.get("outputs", []), new.get("outputs", [])
        if [sorted(output.get("data", {})) for output in before] != [
            sorted(output.get("data", {})) for output in after
        ]:
            found.append(f"cell {number} shows other kinds of output")
            continue
        for one, other in zip(before, after, strict=True):
            found += [
                f"cell {number} says {b!r} instead of {a!r}"
                for a, b in zip(texts(one), texts(other), strict=True)
                if not alike(a, b)
            ]
            if "image/png" in one.get("data", {}) and not _same_picture(
                one.data["image/png"], other.data["image/png"]
            ):
                found.append(f"cell {number} draws another figure")
    return found


def alike(first: str, second: str) -> bool:
    """The same text, with numbers that differ by at most one in the last digit that is shown; whole numbers are equal."""
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
    one, other = (
        image.imread(io.BytesIO(base64.b64decode(text)), format="png") for text in (first, second)
    )
    return one.shape == other.shape and float(np.abs(one - other).mean()) < PIXELS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, default=NOTEBOOKS)
    for path in parser.parse_args().notebooks:
        began = time.perf_counter()
        nbformat.write(execute(path), path)
        print(
            f"{path.name}: {time.perf_counter() - began:.1f} s, {path.stat().st_size / 1000:.0f} kB",
            flush=True,
        )


if __name__ == "__main__":
    main()
