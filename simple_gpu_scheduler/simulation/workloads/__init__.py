"""Workloads for the simulator: recorded elsewhere, from our own journals, or generated.

`rows` has their common form, and turns it into arrivals; `csv`, `swf` and `past_runs` read, `synthetic` generates,
`cells` parses the numbers in traces. All take text, bytes or records and return values; files are read elsewhere.
"""
