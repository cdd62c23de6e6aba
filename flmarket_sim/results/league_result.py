"""`fm.league`: mechanisms through the card of the league."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from flmarket_sim.experiments.engine import Progress
from flmarket_sim.experiments.worker_processes import Crew
from flmarket_sim.league.league_scenario import league_scenario
from flmarket_sim.league.players import ALL, players
from flmarket_sim.report import league_folder
from flmarket_sim.results.study_result import StudyResult, study


def league(
    auctions: Sequence[str] = (ALL,),
    out: str | os.PathLike[str] | None = None,
    *,
    quick: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
    crew: Crew | None = None,
) -> StudyResult:
    """Plays mechanisms through the card of the league, and writes tables and figures.

    Parameters
    ----------
    auctions
        NAME, NAME@WEIGHTS, module:Class or file.py:Class; "all" stands for every built-in one.
    out
        A new directory, or that of a league that was stopped, which then continues. By default it
        is `runs/study-league-HASH`.
    quick
        Whether the small size of the card is played.
    workers, progress, crew
        As for `fm.study`.
    """
    asked = league_scenario(players(auctions), "quick" if quick else "full")
    folder = None if out is None else Path(out)
    return study(
        asked, folder, workers=workers, progress=progress, crew=crew, present=league_folder.write
    )
