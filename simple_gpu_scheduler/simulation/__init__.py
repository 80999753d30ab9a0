"""Workloads under a virtual clock: simulating, comparing, tuning and learning policies."""
