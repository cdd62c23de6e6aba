"""Files that appear whole, folders with one writer, and files that somebody else wrote."""
