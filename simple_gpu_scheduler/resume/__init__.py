"""Finding a run to resume, what is left of it, and which of its jobs are still running."""
