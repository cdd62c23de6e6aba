"""Robust rules: from messages, weights and noise to one gradient. One idea a file."""
