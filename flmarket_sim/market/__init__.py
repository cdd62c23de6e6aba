"""The discrete-event world: who says what to whom, and when."""
