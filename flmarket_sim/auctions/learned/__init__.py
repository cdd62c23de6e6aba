"""Learned auctions: networks, their weights, and how their output becomes an outcome."""
