"""Faults that the scheduler must survive: each is a function that brings them about, checks what was promised, and counts.

`ground` is what all share: a directory with a program, its jobs and their ledger. `kills`, `disks`, `journals` and
`crowds` bring the faults about.
"""
