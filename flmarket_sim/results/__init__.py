"""What Python calls return: one file a result, each with a table, a figure and files."""
