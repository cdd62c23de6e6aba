"""Sweeps: one scenario over axes and seeds. As a call it runs one: `fm.sweep("quickstart")`."""

from flmarket_sim.callable_room import call

call(__name__, "flmarket_sim.results.sweep_result:sweep")
