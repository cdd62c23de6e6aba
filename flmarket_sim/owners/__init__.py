"""Who the owners are: valuations, types, bids, and the population."""
