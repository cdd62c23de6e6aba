"""Tables for people: rows as text that fits a terminal, as HTML, and as files for a paper."""

from flmarket_sim.tables.result_table import ResultTable

__all__ = ["ResultTable"]
