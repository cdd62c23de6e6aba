"""A figure that would show one value is a sentence."""

from flmarket_sim.report.html.constants import without_constants
from flmarket_sim.report.html.parts import Chart, Series


def test_a_constant_with_an_interval_or_a_second_value_keeps_its_figure():
    def drawn(*points):
        return Chart("c", "C", "line", "x", "y", [Series("s", list(points))])

    kept = [drawn([1, 5.0, 4.0, 6.0], [2, 5.0, 4.0, 6.0]), drawn([1, 5.0], [2, 5.1])]
    left_out = [drawn([1, 5.0], [2, 5.0]), drawn([1, 5.0, 5.0, 5.0], [2, 5.0, 5.0, 5.0])]
    charts, sentences = without_constants([*kept, *left_out, drawn([1, 0.25])])
    assert charts == kept
    assert sentences == [
        "Y is 5 throughout; it has no figure for that reason.",
        "Y is 0.25; it has no figure because there is only this value.",
    ]
