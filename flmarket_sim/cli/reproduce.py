"""`flmarket reproduce`: the paper's figures and tables again."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from flmarket_sim.cli.crew import Cluster, ClusterOptions, ClusterWait, Workers, crew_from
from flmarket_sim.cli.output import (
    AsJson,
    Overrides,
    print_json,
    print_note,
    print_text,
    progress,
    stdout,
)
from flmarket_sim.errors import FlmarketError, shortened


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...|all",
            help="error-bound, invalid-gradients, aggregation, accuracy, levels, guarantees, "
            "surplus.",
        ),
    ],
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Few markets, few seeds, short trainings: minutes instead of hours."
        ),
    ] = False,
    out: Annotated[
        Path, typer.Option(help="Directory of finished tasks; the same command continues there.")
    ] = Path("runs/reproduction"),
    page: Annotated[
        Path | None,
        typer.Option(
            help="The page (.md); by default in --out and named after the results, "
            "reproduction.md for all."
        ),
    ] = None,
    authors: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the authors' published weights (.pt, also in its folders checkpoints "
            "and levels), to be measured too."
        ),
    ] = None,
    workers: Workers = None,
    cluster: Cluster = None,
    cluster_options: ClusterOptions = None,
    cluster_wait: ClusterWait = 300.0,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Reproduce results of the paper: a figure, a table and Parquet of each.

    A page compares them with the claims of the paper.
    """
    from flmarket_sim.paper import reproduction as study
    from flmarket_sim.paper.claims import verdicts
    from flmarket_sim.paper.published_files import missing_files
    from flmarket_sim.report import reproduction_page as report

    results = study.chosen(names)
    target = page or out / (
        "reproduction.md" if results == list(study.RESULTS) else f"{'-'.join(results)}.md"
    )
    if authors is not None and (missing := missing_files(authors)):
        print_note(
            f"{authors} lacks {len(missing)} of the authors' files, whose claims are not asked: "
            + shortened(", ".join(missing))
        )
    crew = crew_from(workers, cluster, cluster_options, cluster_wait)
    done = []
    failed: dict[str, str] = {}
    try:
        for name in results:
            with progress(name, "tasks") as tell:
                made, wrong = study.reproduce(
                    [name],
                    out,
                    quick=quick,
                    crew=crew,
                    authors=authors,
                    overrides=overrides or (),
                    progress=tell,
                )
            done += made
            failed |= wrong
            if name in wrong:
                print_note(f"{name}: {wrong[name]}")
    except KeyboardInterrupt:
        raise FlmarketError(
            f"interrupted; finished tasks are in {out}, and the same command continues"
        ) from None
    if not done:
        raise FlmarketError(f"nothing could be reproduced: {'; '.join(failed.values())}")
    more = "".join(f" --set {shlex.quote(setting)}" for setting in overrides or ()) + (
        " --authors DIR" if authors else ""
    )
    report.write(
        done,
        target,
        f"flmarket reproduce {' '.join(names)}{' --quick' if quick else ''}{more}",
        failed,
    )
    if as_json:
        claims = {r.name: [vars(v) for v in verdicts(r.name, r.finding.rows)] for r in done}
        print_json(
            {
                "page": str(target),
                "results": claims,
                "seconds": {r.name: r.seconds for r in done},
                "failed": failed,
            }
        )
    else:
        for result in done:
            stdout.print(f"[bold]{study.RESULTS[result.name]}[/bold] ({result.seconds:.0f} s)")
            for verdict in verdicts(result.name, result.finding.rows):
                stdout.print(
                    f"  {verdict.claim}: [bold]{verdict.outcome}[/bold]. "
                    f"{escape(verdict.evidence)}",
                    highlight=False,
                )
        print_text(f"Page, figures and tables: {target}")
    if failed:
        raise typer.Exit(1)
