"""Scores of mechanisms as a table and as a figure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from flmarket_sim.auctions.auction_name import AuctionName
from flmarket_sim.errors import InputError
from flmarket_sim.report import figures
from flmarket_sim.studies.evaluation import Score

MOST_FACTORS = 1000


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
        if (high - low) / step > MOST_FACTORS:
            raise InputError(
                f"budgets {text!r} are {(high - low) / step:,.0f} factors; "
                f"{MOST_FACTORS:,} are the most"
            )
        return [round(low + k * step, 10) for k in range(int((high - low) / step + 1e-9) + 1)]
    raise InputError(
        "budgets must be low:high:step with 0 < low <= high and step > 0, one number, or "
        f"'uniform'; got {text!r}"
    )


def table(scores: list[Score]) -> Table:
    """A table for a terminal of 80 columns; the JSON has all numbers.

    The column "no sale" is the share of markets in which nothing was bought; it appears only if
    there are such markets. "/best" is the error over that of first-best, the best purchase found
    at true valuations, and "/floor" that over the second-best floor.
    """
    searched, failed = scores[0].regret is not None, any(score.invalid_rate > 0 for score in scores)
    columns: dict[str, Callable[[Score], str]] = {
        "error bound": lambda s: f"{s.error_bound:.2f} [{s.error_low:.2f}, {s.error_high:.2f}]",
        "/best": lambda s: f"{s.ratio:.2f}",
        "/floor": lambda s: "" if s.over_floor is None else f"{s.over_floor:.2f}",
        "spent": lambda s: f"{s.spent_share:.0%}",
        "IR": lambda s: f"{s.ir_violation:.3f}",
    }
    if scores[0].floor is None:
        del columns["/floor"]
    if failed:
        columns["no sale"] = lambda s: f"{s.invalid_rate:.1%}"
    if searched:
        del columns["spent"]
        if "/floor" in columns:  # both ratios and both intervals do not fit
            del columns["/best"]
        columns["regret"] = lambda s: f"{s.regret:.3f} [{s.regret_low:.3f}, {s.regret_high:.3f}]"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0))
    table.add_column("budget", justify="right", no_wrap=True)
    table.add_column("auction", overflow="fold")
    for head in columns:
        table.add_column(head, justify="right", no_wrap=True)
    last = None
    for score in scores:
        if last is not None and last != score.budget_factor:
            table.add_section()
        budget = "" if last == score.budget_factor else score.budget_factor
        table.add_row(
            budget,
            Text(AuctionName.parse(score.auction).label),
            *(cell(score) for cell in columns.values()),
        )
        last = score.budget_factor
    return table


def floor_sentence(scores: list[Score]) -> str:
    """What the floor is, for people."""
    return (
        f"/floor: mean error over what no truthful mechanism can be below, in "
        f"{scores[0].floor_profiles:,} markets whose budgets are public (factor x the value of "
        "everything at the mean rate); --json has the intervals"
    )


def draw(scores: list[Score], path: Path) -> None:
    """Mean error bound by budget factor with 95 % bands; first-best, the best purchase found at
    true valuations, is dashed."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    try:
        by_factor = sorted({float(score.budget_factor) for score in scores})
    except ValueError:
        raise InputError("a figure needs several budget factors: --budgets low:high:step") from None
    with figures.axes(path) as axis:
        for place, name in enumerate(dict.fromkeys(score.auction for score in scores)):
            of_auction = [score for score in scores if score.auction == name]
            colour = figures.COLOURS[place % len(figures.COLOURS)]
            axis.plot(
                by_factor,
                [s.error_bound for s in of_auction],
                marker="o",
                markersize=3,
                color=colour,
                label=AuctionName.parse(name).label,
            )
            low, high = (
                [getattr(s, key) for s in of_auction] for key in ("error_low", "error_high")
            )
            axis.fill_between(by_factor, low, high, color=colour, alpha=0.15, linewidth=0)
        best_found = [
            next(s.first_best for s in scores if float(s.budget_factor) == factor)
            for factor in by_factor
        ]
        axis.plot(by_factor, best_found, "--", color="black", label="first-best")
        axis.set(
            xlabel="budget / value of everything for sale", ylabel="mean error bound", yscale="log"
        )
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.yaxis.set_minor_formatter(NullFormatter())
