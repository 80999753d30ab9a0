"""Faults that the scheduler must survive: each function brings one about, checks what was promised, and counts.

`ground` is what all share: a directory with a program, its jobs and their ledger. The others bring the faults about.
"""
