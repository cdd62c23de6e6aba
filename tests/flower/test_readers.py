"""Reports, SQL and views read a run of real clients as they read a simulated one."""

import json

import pytest

import flmarket_sim as fm
from flmarket_sim.eventlog.participant_view import write_view
from flmarket_sim.eventlog.run import Run
from flmarket_sim.market.simulation import run as simulate
from flmarket_sim.report.run_summary import in_brief
from tests.flower.small_markets import held, small
from tests.support.commands_here import called


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readers")
    return held(small(), folder / "real"), simulate(small(), folder / "simulated")


@pytest.mark.parametrize(
    ("viewer", "kinds"), [("broker", ("bid", "allocation", "payment")), ("buyer", ("payment",))]
)
def test_a_view_has_what_the_view_of_the_simulation_has(runs, viewer, kinds, tmp_path):
    for number, run in enumerate(runs):
        write_view(run, viewer, tmp_path / str(number))
    real, simulated = Run(tmp_path / "0"), Run(tmp_path / "1")
    hidden = {"seq", "time", "sender", "receiver"}  # owners' numbers are secret in a view
    for kind in kinds:
        rows = [
            sorted(
                str({k: v for k, v in row.items() if k not in hidden})
                for row in run.events(kind).to_pylist()
            )
            for run in (real, simulated)
        ]
        assert rows[0] and rows[0] == rows[1]


def test_sql_answers_the_same(runs):
    query = (
        "SELECT round, count(*) AS sales, sum(amount) AS money FROM payment WHERE sender = -1 "
        "GROUP BY round ORDER BY round"
    )
    assert runs[0].sql(query).to_pylist() == runs[1].sql(query).to_pylist()


def test_a_report_page_and_a_summary_are_made(runs, tmp_path):
    fm.report(runs[0], out=tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 10_000
    real, simulated = (run.summary()["buyers"]["buyer"] for run in runs)
    for key in ("rounds", "spent", "gradients", "privacy_sold", "final_accuracy"):
        assert real[key] == pytest.approx(simulated[key])


def test_nothing_is_said_of_what_only_owners_know(runs, tmp_path):
    """A real owner keeps to herself what a sale was worth to her."""
    for run, known in zip(runs, (False, True), strict=True):
        said = " ".join(in_brief(run).sentences)
        assert ("more than their privacy was worth to them" in said) == known
        assert ("only they know" in said) != known and "owners kept  " not in said
        page = fm.report(run, out=tmp_path / f"{known}.html").path.read_text()
        assert ("Payments against valuations" in page) == known
    json.loads(json.dumps(runs[0].summary()), parse_constant=lambda word: pytest.fail(word))


def test_a_finished_run_is_what_it_says(runs):
    told = called("verify", runs[0].path)
    assert told.code == 0, told.err
