"""Commands that keep the project in order: locks, licences, coverage, mutants, packages."""
