"""Side-by-side measurements: `make bench` runs all of them and writes benchmarks/results.md."""
