"""A module that ends the program of whoever imports it: no plug-in can be in it."""

raise SystemExit(0)
