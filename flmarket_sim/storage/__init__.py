"""Files that appear complete, directories with one writer, and files from untrusted sources."""
