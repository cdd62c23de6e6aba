"""Studies: questions about a market, each answered by many tasks."""
