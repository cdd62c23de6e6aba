"""The weights that the paper's authors published: their names, and where a folder has them.

A folder has the files in itself, or in its folders `checkpoints` and `levels`.
"""

from __future__ import annotations

from pathlib import Path

from flmarket_sim.errors import InputError

MARKETS = ("iid", "niid")  # the authors' names of the two markets
FILES = {
    ("regretnet", "opt-aggr"): "reg_nslkdd_{}.pt",
    ("m-regretnet", "opt-aggr"): "8-reg_nslkdd_{}.pt",
    ("dm-regretnet", "opt-aggr"): "dm-reg_opt_nslkdd_{}.pt",
    ("dm-regretnet", "convl-aggr"): "dm-reg_convl_nslkdd_{}.pt",
}
LEVELS = (1, 2, 4, 8, 16)  # with instances behind the paper's figure on M
INSTANCES = 10
FOLDERS = ("", "checkpoints", "levels")


def located(authors: str | Path, file: str) -> Path | None:
    """The path of a file of this name; None if the folder lacks it."""
    paths = (Path(authors) / folder / file for folder in FOLDERS)
    return next((path for path in paths if path.is_file()), None)


def instance_names(levels: int, market: str) -> list[str]:
    """File names of the ten instances of M-RegretNet with M levels (RegretNet for M = 1)."""
    if levels not in LEVELS:
        return []
    stem = f"{'' if levels == 1 else f'{levels}-'}reg_nslkdd_{market}"
    return [f"{stem}{'' if k == 0 else f'_{k}'}.pt" for k in range(INSTANCES)]


def missing_files(authors: Path) -> list[str]:
    """Names of the published files that a folder lacks; it is refused if it lacks all."""
    if not authors.is_dir():
        raise InputError(f"{authors} is not a folder of published weights")
    tables = [pattern.format(market) for market in MARKETS for pattern in FILES.values()]
    instances = [
        name for market in MARKETS for levels in LEVELS for name in instance_names(levels, market)
    ]
    names = list(dict.fromkeys(tables + instances))
    missing = [name for name in names if located(authors, name) is None]
    if len(missing) == len(names):
        raise InputError(
            f"{authors} has no published weights: neither it nor its folders 'checkpoints' and "
            f"'levels' have a file such as {names[0]} or {names[-1]}"
        )
    return missing
