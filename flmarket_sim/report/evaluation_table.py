"""Budget factors as people type them, and what the floor of an evaluation is."""

from __future__ import annotations

from flmarket_sim.errors import InputError, shown
from flmarket_sim.studies.evaluation import Score

MOST_FACTORS = 1000


def factors(text: str) -> list[float] | None:
    """Budget factors: `low:high:step` (both ends included), a list `0.5,1,2`, one number, or
    'uniform' (None)."""
    if text == "uniform":
        return None
    ranged = ":" in text
    try:
        numbers = [float(part) for part in text.split(":" if ranged else ",")]
    except ValueError:
        numbers = []
    if not ranged and numbers and all(0 < number < float("inf") for number in numbers):
        _few_enough(text, len(numbers))
        return list(dict.fromkeys(numbers))
    if len(numbers) == 3 and 0 < numbers[0] <= numbers[1] < float("inf") and numbers[2] > 0:
        low, high, step = numbers
        _few_enough(text, (high - low) / step)
        return [round(low + k * step, 10) for k in range(int((high - low) / step + 1e-9) + 1)]
    raise InputError(
        "budgets must be low:high:step with 0 < low <= high and step > 0, numbers above 0 with "
        f"commas between them, one number, or 'uniform'; got {shown(text)}"
    )


def _few_enough(text: str, count: float) -> None:
    if count > MOST_FACTORS:
        raise InputError(
            f"budgets {shown(text)} are {count:,.0f} factors; {MOST_FACTORS:,} are the most"
        )


def floor_sentence(scores: list[Score]) -> str:
    """What the floor is, for people."""
    return (
        f"/floor: mean error over what no truthful mechanism can be below, in "
        f"{scores[0].floor_profiles:,} markets whose budgets are public (factor x the value of "
        "everything at the mean rate)"
    )
