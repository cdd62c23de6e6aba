"""CSV and Parquet files of the user: what they become, and what is refused by name."""

import csv

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flmarket_sim.errors import InputError, ScenarioError
from flmarket_sim.learning import record_files
from flmarket_sim.learning.dataset import stratified_split
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.scenario_file import build_scenario

COLUMNS = ("age", "dose", "group", "hospital", "outcome")


def people(count=60):
    rng = np.random.default_rng(3)
    return [
        (
            int(rng.integers(20, 90)),
            round(float(rng.normal(5, 2)), 3),
            ("a", "b", "c")[i % 3],
            f"h{i % 4}",
            ("ill", "well")[int(rng.random() < 0.4)],
        )
        for i in range(count)
    ]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(rows, columns=COLUMNS, name="people.csv", delimiter=","):
    with open(name, "w", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([columns, *rows])


def load(name="csv", **options):
    path = {"csv": "people.csv", "parquet": "people.parquet"}[name]
    options = {"path": path, "label": "outcome", "ignore": ["hospital"]} | options
    return registry.datasets.create(name, **options).load(Streams(0))


def test_a_file_becomes_what_a_slow_reader_computes(here):
    rows = people()
    write(rows)
    data = load()
    assert data.classes == ("ill", "well")
    labels = np.array([row[4] == "well" for row in rows], np.int64)
    train, test = stratified_split(labels, 0.2)
    assert data.train_y.tolist() == labels[train].tolist()
    assert data.test_y.tolist() == labels[test].tolist()
    numbers = np.array([row[:2] for row in rows], float)
    low, high = numbers[train].min(axis=0), numbers[train].max(axis=0)
    for x, part in ((data.train_x, train), (data.test_x, test)):
        for got, row in zip(x, part, strict=True):
            scaled = [min(max(v, 0), 1) for v in (numbers[row] - low) / (high - low)]
            flags = [float(rows[row][2] == group) for group in "abc"]
            assert got.tolist() == pytest.approx([*scaled, *flags], abs=1e-6)


def test_a_parquet_file_gives_the_same_as_a_csv_file(here):
    rows = people()
    write(rows)
    columns = {name: [row[i] for row in rows] for i, name in enumerate(COLUMNS)}
    pq.write_table(pa.table(columns), "people.parquet")
    assert load("parquet").sha256() == load("csv").sha256()


def test_numbers_can_be_standardised_in_three_ways(here):
    rows = people(200)
    rows[0] = (10**6, *rows[0][1:])  # far outside
    write(rows)
    raw, scored = load(standardise="none"), load(standardise="z-score")
    assert raw.train_x[:, 0].max() == 10**6 or raw.test_x[:, 0].max() == 10**6
    assert scored.train_x.max() <= 3 and scored.train_x.min() >= -3
    dose = raw.train_x[:, 1].astype(float)
    inside = np.abs((dose - dose.mean()) / dose.std()) < 3
    expected = ((dose - dose.mean()) / dose.std())[inside]
    assert scored.train_x[inside, 1] == pytest.approx(expected, abs=1e-4)


def test_a_test_file_has_the_scales_and_categories_of_the_training_file(here):
    rows = people()
    write(rows)
    stranger = (200, 5.0, "never seen", "nobody", "well")
    write([stranger, rows[0]], name="test.csv")
    data = load(test="test.csv")
    assert len(data.train_y) == 60 and data.test_y.tolist() == [1, data.classes.index(rows[0][4])]
    assert data.test_x[0, 0] == 1.0  # clipped to the range of the training records
    assert data.test_x[0, 2:].tolist() == [0, 0, 0]
    write([(30, 5.0, "a", "h0", "dead")], name="test.csv")
    with pytest.raises(InputError, match=r"test.csv has 1 records of classes .* 'dead'"):
        load(test="test.csv")


def test_missing_values_are_refused_by_name_replaced_or_dropped(here):
    rows = people()
    rows[3] = ("", *rows[3][1:])
    rows[4] = ("NA", *rows[4][1:])
    rows[5] = (*rows[5][:2], "?", *rows[5][3:])
    write(rows)
    with pytest.raises(InputError, match=r"missing values in 'age' \(2\), 'group' \(1\)"):
        load()
    assert len(load(missing="drop").train_y) + len(load(missing="drop").test_y) == 57
    whole = load(missing="mean", standardise="none", test=0.1)
    x = np.concatenate([whole.train_x, whole.test_x])
    ages = [row[0] for row in rows if isinstance(row[0], int)]
    known = whole.train_x[np.isin(whole.train_x[:, 0], ages)]
    assert len(x) == 60 and (x[:, 2:].sum(axis=1) == 0).sum() == 1
    assert np.isclose(x[:, 0], known[:, 0].mean(), atol=1e-3).sum() >= 2
    rows[6] = (*rows[6][:4], "")
    write(rows)
    with pytest.raises(InputError, match=r"the label \(1\), which no mean can replace"):
        load(missing="mean")


def test_numbers_that_stand_for_names_get_flags(here):
    rows = [(i % 3, *row[1:]) for i, row in enumerate(people())]
    write(rows)
    assert load().train_x.shape[1] == 5 and load(codes=["age"]).train_x.shape[1] == 7


def test_labels_can_be_numbers_in_their_own_order(here):
    write([(*row[:4], 10 if row[4] == "ill" else 9) for row in people()])
    assert load().classes == ("9", "10")


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda rows: rows, {"label": "outcom"}, "no column 'outcom', which label names; did you"),
        (lambda rows: rows, {"ignore": ["x"]}, "no column 'x', which ignore names"),
        (lambda rows: [(*r[:4], "ill") for r in rows], {}, r"one class \('ill'\)"),
        (lambda rows: [(*rows[0][:4], "dead"), *rows], {}, r"too few records: 'dead \(1\)'"),
        (lambda rows: [(30, *r[1:]) for r in rows], {}, "'age' has one value"),
        (lambda rows: [("inf", *r[1:]) for r in rows], {}, r"infinite numbers in 'age' \(60\)"),
        (lambda rows: [("", *r[1:]) for r in rows], {}, "column 'age' has no value at all"),
        (lambda rows: rows, {"categorical": "refuse"}, "texts in 'group'"),
        (lambda rows: rows, {"most_categories": 2}, "column 'group' has 3 different texts"),
        (lambda rows: [("2024-01-01", *r[1:]) for r in rows], {}, "'age' is of type date32"),
        (lambda rows: rows, {"label": "dose"}, "'dose' has fractions such as"),
        (lambda rows: [], {}, "no records"),
        (lambda rows: rows, {"delimiter": ";"}, "one column, .* separated by ','"),
        (lambda rows: rows, {"encoding": "utf-99"}, "no encoding 'utf-99'"),
        (lambda rows: rows, {"owner": "outcome"}, "cannot be both label and owner"),
        (lambda rows: rows, {"features": ["age", "outcome"]}, "cannot be a feature too"),
        (lambda rows: rows, {"sha256": "0" * 64}, "not the file that the scenario means"),
        (lambda rows: rows, {"test": "other.csv"}, "'other.csv' does not exist; relative paths"),
    ],
)  # fmt: skip
def test_what_cannot_be_learnt_from_is_refused_by_name(here, change, options, message):
    write(change(people()))
    with pytest.raises(InputError, match=message):
        load(**options)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        ("age,outcome\n1,a\n".encode("utf-16"), "UTF-16"),
        ("größe,outcome\n1,ä\n2,ü\n".encode("latin-1"), "not a CSV file in utf-8|encoding"),
        ("age,outcome\n1,ä\n2,ü\n".encode("latin-1"), 'encoding = "latin-1"'),
        (b"a,a,outcome\n1,2,x\n", "several columns called 'a'"),
        (b"a,,outcome\n1,2,x\n", "column 2 has no name"),
        (b"a,outcome\n1,2,x\n", "not a CSV file"),
        (b"PAR1xxxx", "is no CSV file"),
    ],
)
def test_files_that_are_no_tables_are_refused(here, content, message):
    (here / "people.csv").write_bytes(content)
    with pytest.raises(InputError, match=message):
        load(ignore=[])


def test_a_huge_file_is_refused_before_it_is_read(here, monkeypatch):
    write(people())
    monkeypatch.setattr(record_files, "LARGEST_CSV", 1000)
    with pytest.raises(InputError, match=r"at most .* GB"):
        load()


def test_constant_columns_can_be_dropped_or_kept(here):
    write([(30, *row[1:]) for row in people()])
    assert load(constant="drop").train_x.shape[1] == 4
    assert load(constant="keep").train_x.shape[1] == 5


def test_a_file_without_header_and_with_other_signs_is_read(here):
    write(people()[1:], people()[0], delimiter="\t")
    data = load(delimiter="\t", header=False, label="f4", ignore=["f3"])
    assert data.classes == ("ill", "well") and len(data.train_y) + len(data.test_y) == 60


def test_a_changed_file_is_read_again(here):
    write(people())
    before = load().sha256()
    write(people(90))
    assert load().sha256() != before and len(load().train_y) > 60


def test_a_scenario_is_refused_with_the_reason_and_its_place(here):
    table = {"name": "csv", "path": "people.csv", "label": "outcome"}
    with pytest.raises(ScenarioError, match=r"data: the data file 'people.csv' does not exist"):
        build_scenario({"data": table})
    write(people())
    with pytest.raises(ScenarioError, match="has no such option; did you mean 'label'"):
        build_scenario({"data": table | {"lable": "x"}})
    with pytest.raises(ScenarioError, match=r"data\.standardise.*'unit', 'z-score' or 'none'"):
        build_scenario({"data": table | {"standardise": "zscore"}})
