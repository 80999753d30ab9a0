"""The options of commands, a file for each section of the help."""
