"""Studies: questions asked of a market many times over."""
