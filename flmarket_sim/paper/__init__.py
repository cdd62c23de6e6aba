"""The paper's experiments again, and its claims."""
