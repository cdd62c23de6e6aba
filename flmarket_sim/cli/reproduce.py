"""`flmarket reproduce`: the paper's figures and tables again."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from flmarket_sim.cli.crew import Cluster, ClusterOptions, ClusterWait, Workers, crew_from
from flmarket_sim.cli.figure_options import (
    FigureTitle,
    FigureWidth,
    LegendNames,
    XLabel,
    YLabel,
    figure_style,
)
from flmarket_sim.cli.output import (
    AsJson,
    Overrides,
    directory_and_table,
    print_json,
    print_note,
    print_paragraphs,
    print_text,
    progress,
    save_table,
)
from flmarket_sim.errors import FlmarketError, Interrupted, shortened


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
        Path | None,
        typer.Option(
            help="Directory of finished tasks, where the same command continues; by default "
            "runs/reproduction. Or a file for the table of claims: .csv, .md, .tex, .parquet."
        ),
    ] = None,
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
    width: FigureWidth = None,
    x_label: XLabel = None,
    y_label: YLabel = None,
    title: FigureTitle = None,
    names_of_lines: LegendNames = None,
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

    style = figure_style(width, x_label, y_label, title, names_of_lines)
    results = study.chosen(names)
    directory, table = directory_and_table(out)
    folder = directory or Path("runs/reproduction")
    target = page or folder / (
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
                    folder,
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
        raise Interrupted(
            f"interrupted; finished tasks are in {folder}, and the same command continues"
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
        style,
    )
    claims = [
        {"result": result.name, **vars(ruled)}
        for result in done
        for ruled in verdicts(result.name, result.finding.rows)
    ]
    save_table(claims, table)
    if as_json:
        by_result = {r.name: [vars(v) for v in verdicts(r.name, r.finding.rows)] for r in done}
        print_json(
            {
                "page": str(target),
                "results": by_result,
                "seconds": {r.name: r.seconds for r in done},
                "failed": failed,
            }
        )
    else:
        for result in done:
            print_text(f"{study.RESULTS[result.name]} ({result.seconds:.0f} s)")
            print_paragraphs(
                f"- {row['claim']}: {row['outcome']}. {row['evidence']}"
                for row in claims
                if row["result"] == result.name
            )
            print_text("")
        print_text(f"Page, figures and tables: {target}")
    if failed:
        raise typer.Exit(1)
