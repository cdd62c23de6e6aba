"""Sweeps: one scenario over axes and seeds."""
