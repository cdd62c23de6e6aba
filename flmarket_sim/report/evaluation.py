"""Scores of mechanisms as a table and as a figure."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.table import Table

from flmarket_sim.errors import InputError
from flmarket_sim.mechanism_design.evaluation import Score

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")  # Okabe and Ito


def factors(text: str) -> list[float] | None:
    """Budget factors from `low:high:step` (both ends included), one number, or 'uniform' (None)."""
    if text == "uniform":
        return None
    try:
        numbers = [float(part) for part in text.split(":")]
    except ValueError:
        numbers = []
    if len(numbers) == 1 and numbers[0] > 0:
        return numbers
    if len(numbers) == 3 and 0 < numbers[0] <= numbers[1] and numbers[2] > 0:
        low, high, step = numbers
        return [round(low + k * step, 10) for k in range(int((high - low) / step + 1e-9) + 1)]
    raise InputError(
        f"budgets must be low:high:step with 0 < low <= high and step > 0, one number, or 'uniform'; got {text!r}"
    )


def table(scores: list[Score]) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("budget", "auction", "error bound", "invalid", "/ first-best", "spent", "IR violation", "regret"):
        shown.add_column(head, justify="left" if head == "auction" else "right", overflow="fold")
    last = None
    for score in scores:
        if last is not None and last != score.budget_factor:
            shown.add_section()
        searched = score.regret is not None
        shown.add_row(
            "" if last == score.budget_factor else score.budget_factor,
            score.auction,
            f"{score.error_bound:.3f} ± {score.error_half_width:.3f}",
            f"{score.invalid_rate:.1%}",
            f"{score.ratio:.3f}",
            f"{score.spent_share:.0%}",
            f"{score.ir_violation:.4f}",
            f"{score.regret:.4f} ± {score.regret_half_width:.4f}" if searched else "",
        )
        last = score.budget_factor
    return shown


def draw(scores: list[Score], path: Path) -> None:
    """Mean error bound by budget factor with 95 % bands, first-best below."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    try:
        by_factor = sorted({float(score.budget_factor) for score in scores})
    except ValueError:
        raise InputError("a figure needs several budget factors: --budgets low:high:step") from None
    figure, axis = plt.subplots(figsize=(6.5, 4), layout="constrained")
    names = list(dict.fromkeys(score.auction for score in scores))
    for place, name in enumerate(names):
        mine = [score for score in scores if score.auction == name]
        y = [score.error_bound for score in mine]
        colour = COLOURS[place % len(COLOURS)]
        axis.plot(by_factor, y, marker="o", markersize=3, color=colour, label=name)
        low = [score.error_bound - score.error_half_width for score in mine]
        high = [score.error_bound + score.error_half_width for score in mine]
        axis.fill_between(by_factor, low, high, color=colour, alpha=0.15, linewidth=0)
    floor = [next(s.first_best for s in scores if float(s.budget_factor) == factor) for factor in by_factor]
    axis.plot(by_factor, floor, "--", color="black", label="first-best")
    axis.set(xlabel="budget / value of everything for sale", ylabel="mean error bound", yscale="log")
    axis.grid(alpha=0.3, which="both", linewidth=0.5)
    axis.legend(frameon=False)
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise InputError(f"the figure cannot be written to {path}: {error}") from None
    plt.close(figure)
