"""The live view: the state of the run, kept at the bottom of the terminal."""
