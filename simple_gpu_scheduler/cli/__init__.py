"""The command line: the only room that imports click."""
