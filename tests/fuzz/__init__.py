"""Damaged and hostile files for every reader: `python -m tests.fuzz READER --inputs 100000`."""
