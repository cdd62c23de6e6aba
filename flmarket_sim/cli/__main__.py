"""`python -m flmarket_sim.cli`: the command line where no program `flmarket` is on the path."""

from flmarket_sim.cli import main

main()
