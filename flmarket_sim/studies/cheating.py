"""What cheating after the sale gains, and who notices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from flmarket_sim.errors import InputError
from flmarket_sim.experiments.market_runs import auction_table, changed, load_data
from flmarket_sim.market.simulation import rounds_and_world
from flmarket_sim.market.world import World
from flmarket_sim.plugins import registry
from flmarket_sim.plugins.plugin_kind import PluginKind
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.part import Probability
from flmarket_sim.statistics import OVER_RUNS, from_seeds
from flmarket_sim.studies.study import Auctions, Count, Factors, Finding, Plot, Row, Work, spread

HONEST, NO_CHECK = "honest", "none"
MEASURES = ("gain", "caught", "false_accused", "kept_privacy", "honest_pay", "error", "accuracy")
Floats = NDArray[np.float64]


def _all_known(names: Sequence[str], kind: PluginKind, besides: str) -> Sequence[str]:
    for name in names:
        if name != besides:
            try:
                kind.get(name)
            except InputError as error:
                raise ValueError(str(error)) from None
    return names


Cheats = Annotated[
    Sequence[str],
    Field(min_length=1),
    AfterValidator(lambda names: _all_known(names, registry.cheats, "")),
]
Checks = Annotated[
    Sequence[str],
    Field(min_length=1),
    AfterValidator(lambda names: _all_known(names, registry.checks, NO_CHECK)),
]


@dataclass(frozen=True)
class Cheating:
    """What each cheat gains by auction, privacy loss and check, against the same owners' honesty.

    Every owner may sell the privacy loss of a cell. A share of them cheats in one way, and then the
    same owners of the same worlds are honest under the same check; the check `none` is no check.

    gain           of the owners who cheat: utility less that of their honesty, over what their
                   honesty is paid without a check
    caught         share of the cheats' judged messages that are accused
    false_accused  share of the other owners' judged messages that are accused
    kept_privacy   share of the sold privacy loss that the cheats' records do not lose
    honest_pay     what owners who never cheat are paid less deposits, over that without a check, if
                   nobody cheats: the price of checking
    error          the true squared error over that without cheats
    accuracy       at the end
    """

    name = "cheating"
    auctions: Auctions
    cheats: Cheats
    checks: Checks
    losses: Factors = (0.5, 1.0, 2.0, 8.0)
    share: Probability = 0.2
    seeds: Count = 20

    def tasks(self, scenario: Scenario) -> list[Work]:
        """A task has all cheats: their worlds are those of one honest run."""
        return [
            {"seed": seed, "auction": auction, "loss": loss, "check": check}
            | {"cheats": list(self.cheats), "share": self.share}
            for seed in range(scenario.seed, scenario.seed + self.seeds)
            for auction in self.auctions
            for loss in self.losses
            for check in self.checks
        ]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        data = load_data(scenario)

        def played(cheat: str | None, check: str) -> tuple[list[Row], World]:
            # A share of nobody lets the ledger book true costs where nobody looks for cheats.
            named = {"name": cheat or work["cheats"][0], "share": work["share"] if cheat else 0.0}
            table = None if check == NO_CHECK else check_table(scenario, check)
            market = changed(
                scenario,
                seed=work["seed"],
                auction=auction_table(work["auction"]),
                owners__privacy_budget=[work["loss"], work["loss"]],
                owners__cheats=[named],
                check=table,
            )
            return rounds_and_world(market, load_data(market) if data is None else data)

        honest_rounds, honest = played(None, work["check"])
        free = honest if work["check"] == NO_CHECK else played(None, NO_CHECK)[1]
        kept = honest.ledger.earned - honest.ledger.forfeited
        pay = _over(kept.sum(), free.ledger.earned.sum())
        error = mean_of_valid(honest_rounds, "true_error")
        cell = {key: work[key] for key in ("seed", "auction", "loss", "check")}
        nothing: Row = {"gain": 0.0, "caught": np.nan, "kept_privacy": 0.0, "error": 1.0}
        everybody = np.ones(len(honest.population), np.bool_)
        rows = [
            cell
            | nothing
            | {"cheat": HONEST, "accuracy": last_accuracy(honest_rounds), "honest_pay": pay}
            | {"false_accused": _accused(honest, everybody)}
        ]
        for cheat in work["cheats"]:
            rounds, world = played(cheat, work["check"])
            assert world.cheating is not None
            who, ledger = world.cheating.code >= 0, world.ledger
            more = ledger.utility()[who].sum() - _utility(honest, who)
            rows.append(
                cell
                | {
                    "cheat": cheat,
                    "gain": _over(more, free.ledger.earned[who].sum()),
                    "caught": _accused(world, who),
                    "false_accused": _accused(world, ~who),
                    "kept_privacy": 1.0 - _over(ledger.lost[who].sum(), ledger.sold[who].sum()),
                    "honest_pay": pay,
                    "error": _over(mean_of_valid(rounds, "true_error"), error),
                    "accuracy": last_accuracy(rounds),
                }
            )
        return rows

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        cells: dict[tuple[Any, ...], list[Row]] = {}
        for run in (row for task in results for row in task):
            key = (run["auction"], run["check"], run["loss"], run["cheat"])
            cells.setdefault(key, []).append(run)
        rows: list[Row] = []
        for (auction, check, loss, cheat), runs in cells.items():
            row: Row = {"auction": auction, "check": check, "privacy_loss": loss, "cheat": cheat}
            row["seeds"] = len(runs)
            for measure in MEASURES:
                row |= spread(measure, from_seeds(np.array([run[measure] for run in runs], float)))
            rows.append(row)
        best = [
            max(group, key=lambda row: (_number(row["gain"]), row["cheat"] == HONEST))
            for group in _grouped(rows)
        ]
        plot = Plot(
            "privacy_loss", "gain", "check", "privacy loss that is for sale",
            "gain of the best cheat / pay for honesty", panel="auction", log_x=True,
        )  # fmt: skip
        shown = ("auction", "check", "privacy_loss", "gain", "cheat", "caught", "false_accused")
        sentences = [_sentence(name, best) for name in self.checks]
        return Finding(rows, plot, sentences, best, OVER_RUNS, shown, best)


def check_table(scenario: Scenario, name: str) -> dict[str, Any]:
    """The scenario's table [check] with another check; its level and consequences stay.

    The options beside them are those of the check that the scenario names. Others have their own.
    """
    if scenario.check is None:
        return {"name": name}
    table = scenario.check.model_dump(mode="json")
    options = () if name == scenario.check.name else scenario.check.options
    kept = {key: value for key, value in table.items() if value is not None and key not in options}
    return kept | {"name": name}


def _utility(world: World, who: NDArray[np.bool_]) -> float:
    """What some owners kept of their sales."""
    return float(world.ledger.utility()[who].sum())


def _accused(world: World, who: NDArray[np.bool_]) -> float:
    return _over(world.ledger.accused[who].sum(), world.ledger.judged[who].sum())


def _over(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")


def mean_of_valid(rounds: list[Row], name: str) -> float:
    """The mean of a column over the rounds in which somebody sold; nan if nobody ever did."""
    values = [row[name] for row in rounds if row["valid"] and row[name] is not None]
    return float(np.mean(values)) if values else float("nan")


def last_accuracy(rounds: list[Row]) -> float:
    """The accuracy of a run at the last evaluated round."""
    measured = [row["accuracy"] for row in rounds if row["accuracy"] is not None]
    return float(measured[-1]) if measured else float("nan")


def _number(value: float) -> float:
    return value if np.isfinite(value) else -np.inf


def _grouped(rows: list[Row]) -> list[list[Row]]:
    """The rows of each auction, check and privacy loss."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["auction"], row["check"], row["privacy_loss"]), []).append(row)
    return list(groups.values())


def _sentence(check: str, best: list[Row]) -> str:
    own = [row for row in best if row["check"] == check]
    honest = sum(row["cheat"] == HONEST for row in own)
    cheats = [row for row in own if row["cheat"] != HONEST]
    where = "without a check" if check == NO_CHECK else check
    said = f"{where}: honesty is the best response in {honest} of {len(own)} cells"
    if not cheats:
        return said
    gain, low, high = (
        f"{max(cheats, key=lambda row: _number(row['gain']))['gain' + end]:.0%}"
        for end in ("", "_low", "_high")
    )
    return (
        f"{said}; elsewhere the best cheat gains up to {gain} [{low}, {high}] of the pay, the "
        "largest of several noisy means"
    )
