"""docs/mechanisms.md: every built-in mechanism, from its own class and from measurements.

`python -m docs.mechanisms` writes the page and the figures anew from the classes, the entries of
the league and docs/numbers/mechanisms.json. `python -m docs.mechanisms measure [NAME...]` measures
first, about half an hour for all of them; what is measured is kept after each mechanism. A
mechanism whose weights are not in this package is named with its file: NAME@FILE.
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import flmarket_sim as fm
from flmarket_sim.auctions import auction_in, named
from flmarket_sim.auctions.auction import claims_of
from flmarket_sim.auctions.first_best import first_best
from flmarket_sim.auctions.play import Player
from flmarket_sim.league import entries, measures
from flmarket_sim.league.card import CardMarket, card
from flmarket_sim.league.card_draws import draws
from flmarket_sim.league.players import CERTIFIED, everybody, records
from flmarket_sim.league.verdict import verdict
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.plugins.registry import BUILT_IN, auctions
from flmarket_sim.storage.atomic_files import write_text

HERE = Path(__file__).parent
PAGE, NUMBERS = HERE / "mechanisms.md", HERE / "numbers" / "mechanisms.json"
FIGURES = HERE / "figures" / "mechanisms"
WITH_WEIGHTS_OF_OTHERS = ("mfg-regretnet",)
ASKS = np.round(np.geomspace(0.1, 4.0, 25), 4)  # what she asks, over her true value
FACTORS = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0)
MARKETS = 100  # of a point
PROPERTIES = ("truthful", "individually_rational", "budget_feasible")
START = """# Every built-in mechanism

<!-- made by: python -m docs.mechanisms -->
The words, the formula and the reference of a mechanism are those of its class. The signs: owner i
has d_i records and the privacy budget eb_i, asks V_i for selling all of it, and v_i(e) for the
privacy loss e; x_i is what her whole sale counts as (by default d_i eb_i), r_i = V_i / x_i; there
are n owners and the budget is B.

A line "audit" has the verdicts of `flmarket audit`, for single-minded owners and for owners of any
valuation: "holds" means that no violation was found in {markets} markets, which is no proof;
"fails" that one was found of what nobody promises; and "refuted" that one was found of a promise,
or of a claim of its publication that the mechanism itself does not promise. "If records are
certified" means that the broker knows them: no promise covers lies about records, and the audit and
the league try none. A line "league" has its place and its verdict over the card
([league.md](league.md)).

The left panel of a figure shows one owner in the first {count} draws of the card's market `iid` who
asks more or less than her sale is worth to her, while everybody else tells the truth: the share of
her privacy budget that she sells, and what she is paid, over the truth of her whole sale, on
average. The right panel shows the error over first-best by budget, in the same market; grey lines
are all other mechanisms. Markets in which nobody sells are left out of its means.
"""


def listed() -> list[str]:
    """All mechanisms of the page, in the order of the registry."""
    known = {*everybody(), *WITH_WEIGHTS_OF_OTHERS}
    return [name for name in BUILT_IN["auction"] if name in known]


def measured(name: str) -> dict[str, Any]:
    """Verdicts of the audit, the answer to one owner's asks, and errors by budget."""
    report = next(iter(fm.audit(name).reports.values()))
    verdicts: dict[str, Any] = {key: {} for key in PROPERTIES}
    for one in report.verdicts:
        if one.name in verdicts:
            verdicts[one.name][one.owners] = {"outcome": one.outcome, "markets": one.markets}
    sold, paid = answers(name, card().market("iid"))
    errors = errors_by_budget(name, card().market("iid"))
    return {"audit": verdicts, "sold": sold, "paid": paid, "errors": errors}


def answers(name: str, market: CardMarket) -> tuple[list[float], list[float]]:
    """Mean share of her budget that the first owner sells, and her pay, for each of ASKS."""
    truth, budget = draws(card(), market, MARKETS)
    auction = auction_in(named(name), market.error())
    value = truth.value(truth.privacy_budget)[:, 0].mean()
    sold, paid = [], []
    for ask in ASKS:
        rate = truth.rate.copy()
        rate[:, 0] *= ask
        bids = Profiles(truth.family, rate, truth.privacy_budget, truth.data_size).bids(8)
        loss, payment = Player.of(auction, bids, budget, market.seed).means(bids, budget)
        sold.append(round(float((loss / truth.privacy_budget)[:, 0].mean()), 4))
        paid.append(round(float(payment[:, 0].mean() / value), 4))
    return sold, paid


def errors_by_budget(name: str, market: CardMarket) -> list[float | None]:
    """Mean error over mean first-best for each of FACTORS; None where nobody ever sells."""
    truth, _ = draws(card(), market, MARKETS)
    auction, error = auction_in(named(name), market.error()), market.error()
    found: list[float | None] = []
    for factor in FACTORS:
        budget = factor * truth.total_value()
        outcome = auction.decide(truth.bids(8), budget, np.random.default_rng(market.seed))
        errors = measures.errors_of(outcome, truth, error)
        best = first_best(truth, budget, error=error).error_bound
        valid = np.isfinite(errors)
        ratio = errors[valid].mean() / best[valid].mean() if valid.any() else None
        found.append(None if ratio is None else round(float(ratio), 4))
    return found


def measure(asked: list[str]) -> None:
    kept: dict[str, Any] = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {}
    for place, name in enumerate(asked, 1):
        print(f"{place} of {len(asked)}: {name.partition('@')[0]}", flush=True)
        kept[name.partition("@")[0]] = measured(name)
        write_text(NUMBERS, json.dumps(kept) + "\n")


def draw(name: str, numbers: dict[str, Any]) -> None:
    """The figure of one mechanism."""
    import matplotlib

    from flmarket_sim.report.figure_style import SCREEN
    from flmarket_sim.report.figures import COLOURS
    from flmarket_sim.report.shown_figure import ShownFigure

    settings: Any = SCREEN.settings()
    with matplotlib.rc_context(settings):
        figure = ShownFigure(figsize=(9.0, 2.9), layout="constrained")
        figure.svg_text = True
        left, right = figure.subplots(1, 2)
        own = numbers[name]
        left.plot(ASKS, own["sold"], color=COLOURS[0], label="share of her budget that she sells")
        left.plot(ASKS, own["paid"], color=COLOURS[1], label="her pay / what all of it is worth")
        left.axvline(1.0, color="black", linewidth=0.8, linestyle="--")
        left.set_xlabel("her ask / the truth")
        left.set_xscale("log")
        left.set_ylim(bottom=0.0)
        left.legend(frameon=False, fontsize="small")
        for other, found in numbers.items():
            if other != name:
                right.plot(FACTORS, _line(found), color="#cccccc", linewidth=0.8)
        right.plot(FACTORS, _line(own), color=COLOURS[0], marker="o", markersize=4)
        right.axhline(1.0, color="black", linewidth=0.8, linestyle="--")
        right.set_xlabel("budget / value of everything for sale")
        right.set_ylabel("error / first-best")
        right.set_yscale("log")
        right.set_ylim(0.9, 12.0)
        right.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
        for axis in (left, right):
            axis.xaxis.set_major_formatter("{x:g}")
            axis.grid(alpha=0.3, linewidth=0.5)
            axis.spines[["top", "right"]].set_visible(False)
        figure.savefig(FIGURES / f"{name}.svg", metadata={"Date": None})


def _line(numbers: dict[str, Any]) -> list[float]:
    return [np.nan if value is None else value for value in numbers["errors"]]


def section(name: str, numbers: dict[str, Any], shipped: dict[str, dict[str, Any]]) -> str:
    """One mechanism: its words, formula, reference, promises, verdicts and figure."""
    cls = auctions.get(name)
    words = (inspect.getdoc(cls) or "").split("\n\n")[0].rstrip(":")
    lines = [f"## {name}", "", words, "", "```text", cls.formula, "```", ""]
    condition = ", if records are certified" if records(name) == CERTIFIED else ""
    lines.append(f"- Reference: {cls.reference}.")
    lines.append(f"- Promises: {_promises(cls.guarantees)}{condition}.")
    if claims := claims_of(cls):
        lines.append(f"- Its publication claims: {_promises(claims)}.")
    lines.append(f"- Audit: {_audit(numbers['audit'])}.")
    entry = shipped.get(name)
    if entry is not None:
        row = {"auction": name, "records": records(name)} | entry["whole"]
        said = verdict(row).partition(": ")[2]
        place = "" if entry["place"] is None else f"place {entry['place']}; "
        lines.append(f"- League ({entry['size']} card): {place}{said}.")
    lines += [
        "",
        f"![{name}: one owner's asks, and errors by budget](figures/mechanisms/{name}.svg)",
    ]
    return "\n".join(lines)


def _promises(guarantees: dict[str, str]) -> str:
    whom = {"any": "every owner", "single-minded": "single-minded owners", "none": "nobody"}
    kept = [f"{key.replace('_', ' ')} for {whom[who]}" for key, who in guarantees.items()]
    return ", ".join(kept)


def _audit(verdicts: dict[str, Any]) -> str:
    parts = []
    for key, by_owners in verdicts.items():
        found = {owners: one["outcome"] for owners, one in by_owners.items()}
        if len(set(found.values())) == 1:
            parts.append(f"{key.replace('_', ' ')} {next(iter(found.values()))}")
        else:
            each = ", ".join(f"{outcome} ({owners})" for owners, outcome in found.items())
            parts.append(f"{key.replace('_', ' ')} {each}")
    return "; ".join(parts)


def page() -> str:
    numbers = json.loads(NUMBERS.read_text())
    shipped = {entry["auction"].partition("@")[0]: entry for entry in entries.shipped_entries()}
    tried = {
        one["markets"]
        for found in numbers.values()
        for by_owners in found["audit"].values()
        for one in by_owners.values()
        if one["markets"]
    }
    start = START.format(markets=" or ".join(map(str, sorted(tried))), count=MARKETS)
    sections = [section(name, numbers[name], shipped) for name in listed()]
    return "\n\n".join([start.rstrip("\n"), *sections]) + "\n"


def write() -> None:
    numbers = json.loads(NUMBERS.read_text())
    if missing := [name for name in listed() if name not in numbers]:
        raise SystemExit(f"not measured yet: {', '.join(missing)}")
    FIGURES.mkdir(parents=True, exist_ok=True)
    for name in listed():
        draw(name, numbers)
    PAGE.write_text(page())


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(sys.argv[2:] or everybody())
    write()
