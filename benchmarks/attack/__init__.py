"""Attacks on the project: damaged files, faults of the disk, extreme markets, busy machines."""
