"""Scenario files: their model, their rules, and everything that can be wrong with one."""
