"""The paper's experiments, made again, and verdicts on its claims."""
