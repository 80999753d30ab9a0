"""The live view: a picture of the run that stays at the bottom of the terminal."""
