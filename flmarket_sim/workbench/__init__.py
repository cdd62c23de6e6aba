"""The workbench: a local web page over a folder of runs, sweeps, studies and probes."""
