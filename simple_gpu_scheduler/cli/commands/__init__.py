"""The commands, a file for each word that is typed."""
