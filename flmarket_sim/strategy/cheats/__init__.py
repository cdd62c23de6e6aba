"""Cheats: what owners do instead of what they sold."""
