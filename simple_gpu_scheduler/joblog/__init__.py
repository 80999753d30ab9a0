"""GNU parallel's job log, written and read."""
