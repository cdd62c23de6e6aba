"""Every mechanism on the same markets, under the same attack. As a call it plays: `fm.league()`."""

from flmarket_sim.callable_room import call

call(__name__, "flmarket_sim.results.league_result:league")
