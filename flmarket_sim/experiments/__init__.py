"""One engine for many tasks: crews that do them and stores that keep their results."""
