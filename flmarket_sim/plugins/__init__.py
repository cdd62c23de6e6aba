"""Plug-ins of every kind: the registry that finds them by name."""
