"""From options to a run that can start."""
