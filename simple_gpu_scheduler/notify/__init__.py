"""Notifications when a run or a job has ended."""
