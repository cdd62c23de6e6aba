"""Commands that keep the project in order: locks, licences, coverage by room, mutants, packages. Nothing here is shipped."""
