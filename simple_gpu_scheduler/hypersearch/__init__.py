"""Parameters -> command lines. Pure; the command-line options are elsewhere."""
