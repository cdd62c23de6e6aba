"""Certified gains: upper bounds of what a misreport can earn, beside the probe's lower bounds."""
