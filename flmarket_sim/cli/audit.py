"""`flmarket audit`: does an auction do what it says?"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from flmarket_sim.cli.output import AsJson, print_json, progress, stdout


def audit(
    auction: Annotated[
        str, typer.Argument(metavar="AUCTION", help="NAME, NAME@WEIGHTS or module:Class.")
    ],
    effort: Annotated[str, typer.Option(help="quick, standard or exhaustive.")] = "quick",
    markets: Annotated[
        int | None,
        typer.Option(
            min=1, help="Markets of each class of owners, if not the effort's 80, 320 or 640."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the markets and of the search.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Search for small markets that refute the promises of an auction. Exit 1 if there are any."""
    from flmarket_sim.auctions import named
    from flmarket_sim.auctions.auction_name import AuctionName
    from flmarket_sim.report import audit_tables as report
    from flmarket_sim.testing import check_auction

    made: Any = named(auction)
    with progress(f"audit {AuctionName.parse(auction).label}", "checks") as tell:
        found = check_auction(
            made, effort=effort, seed=seed, markets=markets, raise_on_failure=False, progress=tell
        )
    if as_json:
        print_json(found.as_dict() | {"auction": auction})
    else:
        stdout.print(report.render(AuctionName.parse(auction).label, found))
    if not found.passed:
        raise typer.Exit(1)
