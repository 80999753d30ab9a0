"""Telling somebody when a run or a job has ended."""
