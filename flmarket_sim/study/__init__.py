"""Questions asked of a market many times over: a scenario file with a [study] table in, a table and a figure out."""
